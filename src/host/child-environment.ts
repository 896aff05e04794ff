import { GatewayError } from '#base';

const PASSED_ON = new Set(['PATH', 'HOME', 'LANG', 'TERM', 'TZ', 'USER', 'LOGNAME', 'TMPDIR']);
const NAME = /^[A-Z_][A-Z0-9_]{0,63}$/;
const VALUE_CHARACTERS_MAX = 32_768;
const OVERRIDES_MAX = 64;

/** Names that make a program load, run or trust something else (security model T10), compared in upper case. */
const REFUSED_NAMES = new Set([
  ...[
    'PATH',
    'HOME',
    'SHELL',
    'ENV',
    'PS4',
    'PROMPT_COMMAND',
    'SHELLOPTS',
    'BASHOPTS',
    'IFS',
    'CDPATH',
    'GLOBIGNORE',
    'FPATH',
    'ZDOTDIR',
  ],
  ...[
    'PAGER',
    'MANPAGER',
    'LESSOPEN',
    'LESSCLOSE',
    'EDITOR',
    'VISUAL',
    'BROWSER',
    'CC',
    'CXX',
    'CPP',
    'LD',
    'AR',
    'AS',
    'MAKEFLAGS',
    'RUSTC',
  ],
  ...[
    'SSL_CERT_FILE',
    'SSL_CERT_DIR',
    'CURL_CA_BUNDLE',
    'REQUESTS_CA_BUNDLE',
    'CURL_HOME',
    'WGETRC',
    'NETRC',
    'INPUTRC',
    'TERMINFO',
  ],
  ...[
    'TERMINFO_DIRS',
    'HOSTALIASES',
    'LOCALDOMAIN',
    'RES_OPTIONS',
    'GCONV_PATH',
    'NLSPATH',
    'MALLOC_CHECK_',
    'GEM_HOME',
    'GEM_PATH',
  ],
  ...[
    'JAVA_TOOL_OPTIONS',
    '_JAVA_OPTIONS',
    'JDK_JAVA_OPTIONS',
    'CLASSPATH',
    'GOFLAGS',
    'GOPROXY',
    'GOPRIVATE',
    'GONOSUMDB',
    'GOSUMDB',
  ],
  ...[
    'DOCKER_HOST',
    'DOCKER_CONFIG',
    'KUBECONFIG',
    'AWS_CONFIG_FILE',
    'AWS_SHARED_CREDENTIALS_FILE',
    'OPENSSL_CONF',
    'OPENSSL_MODULES',
  ],
  ...[
    'TAR_OPTIONS',
    'GREP_OPTIONS',
    'RSYNC_RSH',
    'SUDO_ASKPASS',
    'DYLD_LIBRARY_PATH',
    'XDG_CONFIG_HOME',
    'XDG_DATA_HOME',
    'XDG_CONFIG_DIRS',
  ],
]);
const REFUSED_PREFIXES = [
  ...[
    'LD_',
    'DYLD_',
    'NODE_',
    'NPM_',
    'YARN_',
    'PNPM_',
    'BASH_',
    'GIT_',
    'SSH_',
    'PYTHON',
    'PIP_',
    'UV_',
    'PERL',
    'RUBY',
    'BUNDLE_',
    'LUA_',
  ],
  ...[
    'CARGO_',
    'RUSTUP_',
    'MAVEN_',
    'GRADLE_',
    'PHP',
    'GHC',
    'REINS_',
    'OPENCLAW_',
    'ASAN_',
    'LSAN_',
    'TSAN_',
    'UBSAN_',
  ],
];

/**
 * A child's whole environment: what this process passes on by name, and a call's own variables. Never the rest of `source`, where the
 * keys of providers are.
 * @throws {GatewayError} `ENV_REFUSED` naming the variable; nothing is dropped silently
 */
export function childEnvironment(
  source: Readonly<Record<string, string | undefined>>,
  overrides: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(source)) {
    if (value !== undefined && (PASSED_ON.has(name) || name.startsWith('LC_'))) environment[name] = value;
  }
  environment['PATH'] ??= '/usr/local/bin:/usr/bin:/bin';
  return { ...environment, ...checkedOverrides(overrides) };
}

/** The variables of one call, each allowed. @throws {GatewayError} `ENV_REFUSED` */
export function checkedOverrides(overrides: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const names = Object.keys(overrides);
  if (names.length > OVERRIDES_MAX) throw refused(names[0] ?? '', `a call may set at most ${OVERRIDES_MAX} variables`);
  const checked: Record<string, string> = {};
  for (const name of names) {
    const value = overrides[name];
    const upper = name.toUpperCase();
    if (
      REFUSED_NAMES.has(upper) ||
      upper.endsWith('_PROXY') ||
      REFUSED_PREFIXES.some((prefix) => upper.startsWith(prefix))
    ) {
      throw refused(name, 'it could change what is run or trusted');
    }
    if (!NAME.test(name)) throw refused(name, 'a name has upper-case letters, digits and "_", at most 64');
    if (typeof value !== 'string') throw refused(name, 'its value must be text');
    if (value.includes('\0') || value.length > VALUE_CHARACTERS_MAX)
      throw refused(name, 'its value holds a NUL or is too long');
    checked[name] = value;
  }
  return checked;
}

function refused(name: string, why: string): GatewayError {
  return new GatewayError('ENV_REFUSED', `The environment variable "${name}" is refused: ${why}`, {
    detail: { name },
    next: 'Leave it out, or set it inside a script that you own.',
  });
}
