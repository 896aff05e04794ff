import { GatewayError, printableLine } from '#base';

const PASSED_ON = new Set(['PATH', 'HOME', 'LANG', 'TERM', 'TZ', 'USER', 'LOGNAME', 'TMPDIR']);
const SEARCH_PATH_DEFAULT = '/usr/local/bin:/usr/bin:/bin';
const NAME = /^[A-Z_][A-Z0-9_]{0,63}$/;
const VALUE_CHARACTERS_MAX = 32_768;
const OVERRIDES_MAX = 64;

// Names that make a program load, run or trust something else (security model T10), compared in upper case.
const REFUSED_NAMES = new Set(
  [
    // what is found and how a shell reads
    'PATH HOME SHELL ENV PS4 PROMPT_COMMAND SHELLOPTS BASHOPTS IFS CDPATH GLOBIGNORE FPATH ZDOTDIR',
    // programs that programs start
    'PAGER MANPAGER LESS LESSOPEN LESSCLOSE EDITOR VISUAL BROWSER CC CXX CPP LD AR AS RUSTC SUDO_ASKPASS RSYNC_RSH',
    // options that build tools obey
    'MAKEFLAGS GNUMAKEFLAGS MFLAGS RUSTFLAGS GOFLAGS GOPROXY GOPRIVATE GONOSUMDB GONOSUMCHECK GOSUMDB GOENV GOROOT',
    'TAR_OPTIONS GREP_OPTIONS JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH DENO_DIR TSX_TSCONFIG_PATH',
    // whom to trust
    'SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES',
    // files that tools read by themselves
    'CURL_HOME WGETRC NETRC INPUTRC TERMINFO TERMINFO_DIRS TERMCAP XDG_CONFIG_HOME XDG_DATA_HOME XDG_CONFIG_DIRS',
    'DOCKER_HOST DOCKER_CONFIG KUBECONFIG AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE GEM_HOME GEM_PATH BOTO_CONFIG',
    // the C library
    'HOSTALIASES LOCALDOMAIN RES_OPTIONS GCONV_PATH NLSPATH LOCPATH MALLOC_CHECK_ GLIBC_TUNABLES TZDIR',
  ].flatMap((names) => names.split(' ')),
);
const REFUSED_PREFIXES = [
  ...['LD_', 'DYLD_', 'BASH_', 'GIT_', 'SSH_', 'REINS_', 'OPENCLAW_'],
  ...['NODE_', 'NPM_', 'YARN_', 'PNPM_', 'BUN_', 'PYTHON', 'PIP_', 'UV_', 'PERL', 'RUBY', 'BUNDLE_', 'LUA_', 'PHP'],
  ...['CARGO_', 'RUSTUP_', 'MAVEN_', 'GRADLE_', 'GHC', 'CMAKE_', 'ASAN_', 'LSAN_', 'MSAN_', 'TSAN_', 'UBSAN_'],
];
const REFUSED_SUFFIXES = [
  ...['_PROXY', '_PRELOAD', '_WRAPPER', '_CA_BUNDLE', '_CERT_FILE', '_CERT_DIR', '_CONFIG_FILE', '_CONFIG_PATH'],
  ...['_INDEX_URL', '_REGISTRY', '_EDITOR', '_PAGER', '_ASKPASS', '_RSH'],
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
  environment['PATH'] ??= SEARCH_PATH_DEFAULT;
  return { ...environment, ...checkedOverrides(overrides) };
}

/** The variables of one call, each allowed. @throws {GatewayError} `ENV_REFUSED` */
export function checkedOverrides(overrides: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const names = Object.keys(overrides);
  if (names.length > OVERRIDES_MAX) throw refused(names[0] ?? '', `a call may set at most ${OVERRIDES_MAX} variables`);
  const checked: Record<string, string> = {};
  for (const name of names) {
    const value = overrides[name];
    if (isRefused(name.toUpperCase())) throw refused(name, 'it could change what is run or trusted');
    if (!NAME.test(name)) throw refused(name, 'a name has upper-case letters, digits and "_", at most 64');
    if (typeof value !== 'string') throw refused(name, 'its value must be text');
    if (value.includes('\0')) throw refused(name, 'its value holds a NUL');
    if (value.length > VALUE_CHARACTERS_MAX) throw refused(name, 'its value is too long');
    checked[name] = value;
  }
  return checked;
}

const isRefused = (upper: string): boolean =>
  REFUSED_NAMES.has(upper) ||
  REFUSED_PREFIXES.some((prefix) => upper.startsWith(prefix)) ||
  REFUSED_SUFFIXES.some((suffix) => upper.endsWith(suffix));

function refused(name: string, why: string): GatewayError {
  const shown = printableLine(name, 100);
  return new GatewayError('ENV_REFUSED', `The environment variable "${shown}" is refused: ${why}`, {
    detail: { name: shown },
    next: 'Leave it out, or set it inside a script that you own.',
  });
}
