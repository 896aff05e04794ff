// What an allow-list cannot vouch for by a name: programs that run what others say, and words that only a shell knows. A list of names is
// never complete, so it only takes away: what is not here still has to be listed by the operator (security model T8).

const SHELLS =
  'sh bash rbash dash ash zsh ksh mksh fish csh tcsh nu elvish xonsh busybox toybox coreutils pwsh powershell cmd wsl';

const INTERPRETERS = [
  'node nodejs deno bun tsx ts-node python pypy ipython perl raku ruby irb jruby php lua luajit tclsh wish expect guile racket sbcl clisp',
  'awk gawk mawk nawk original-awk sed gsed ed ex red vi vim view vimdiff rvim nvi nvim emacs emacsclient nano pico micro helix hx',
  'java jshell groovy scala kotlin clojure clj dotnet csi fsi mono swift ocaml ghc ghci runghc erl elixir iex julia octave gnuplot r rscript',
  'osascript cscript wscript mshta sqlite sqlite3 psql mysql mariadb mongo mongosh redis-cli duckdb gdb lldb dc m4 pandoc',
].join(' ');

const DISPATCHERS = [
  'env time nice ionice nohup timeout stdbuf setsid xargs parallel find fd fdfind script scriptreplay entr watch watchexec flock chronic',
  'sudo doas su sg runuser pkexec setpriv capsh newgrp login chroot unshare nsenter proot fakeroot fakechroot firejail bwrap unbuffer rlwrap',
  'ssh scp sftp sshpass autossh mosh rsh rlogin telnet ftp lftp socat nc ncat netcat openssl git hg svn jj gh',
  'make gmake cmake ninja meson scons just task rake ant mvn gradle bazel buck tox nox pytest cargo go gcc g++ cc c++ cpp clang clang++ tcc ld ldd',
  'tar bsdtar gtar rsync zip unzip cpio rpm dpkg apt apt-get aptitude yum dnf zypper pacman apk brew snap flatpak nix nix-shell guix',
  'npm npx pnpm pnpx yarn yarnpkg corepack bunx pip pipx pipenv uv uvx poetry pdm hatch rye conda mamba gem bundle bundler composer',
  'docker podman nerdctl kubectl helm ctr crictl lxc machinectl systemd-run systemd-nspawn systemctl crontab at batch screen tmux zellij',
  'strace ltrace perf valgrind rr taskset chrt numactl prlimit setarch linux32 linux64 run-parts start-stop-daemon dbus-run-session xvfb-run',
  'less more most man info pager open xdg-open dd direnv mise asdf nvm volta catchsegv eatmydata faketime cpulimit',
].join(' ');

/** Known to a shell alone: as a program of their own, where there is one, they do something else. */
const SHELL_WORDS =
  'cd pushd popd command builtin exec eval source . : trap export readonly local declare typeset unset set shopt shift alias unalias umask ulimit read wait jobs fg bg hash type getopts fc return break continue exit logout let bind enable';

const RUNS_OTHER_CODE = new Set([SHELLS, INTERPRETERS, DISPATCHERS].flatMap((names) => names.split(' ')));
const OF_THE_SHELL = new Set(SHELL_WORDS.split(' '));
/** All that begin so, whatever follows: helpers of git, loaders of the C library, static builds. */
const FAMILIES = ['git-', 'ld-linux', 'ld-musl', 'ld.so', 'ld64.so', 'busybox-', 'bash-', 'docker-'];
/** Options by which a program that is harmless otherwise starts another. */
const STARTING_OPTIONS: Readonly<Record<string, readonly string[]>> = {
  sort: ['--compress-program'],
  split: ['--filter'],
  rg: ['--pre', '--hostname-bin'],
  install: ['--strip-program'],
  wget: ['--use-askpass'],
};

/** Whether a program, by its file's name or the name it is called by, runs what its arguments, its input or a project's files say. */
export function runsOtherCode(name: string): boolean {
  const base = baseName(name);
  if (RUNS_OTHER_CODE.has(base) || FAMILIES.some((family) => base.startsWith(family))) return true;
  // python3.11, perl5.36-x86_64-linux-gnu, node-24, vim.basic: a version or a flavour changes nothing.
  const plain = /^([a-z+]+)(?:[-_.]?\d.*|\.[a-z]+)$/.exec(base)?.[1];
  return plain !== undefined && RUNS_OTHER_CODE.has(plain);
}

/** Whether a command only means something inside a shell, such as `cd`. */
export const isOfTheShell = (name: string): boolean => OF_THE_SHELL.has(name);

/** Whether an option makes the program start another. GNU programs take a long option shortened to any unique beginning. */
export function startsByOption([name = '', ...words]: readonly string[]): boolean {
  const options = STARTING_OPTIONS[baseName(name)];
  if (options === undefined) return false;
  return words.some((word) => {
    const given = word.split('=', 1)[0]!;
    return given.length > 2 && options.some((option) => option.startsWith(given));
  });
}

const baseName = (name: string): string =>
  (name.split(/[/\\]/).at(-1) ?? name).toLowerCase().replace(/\.(?:exe|cmd|bat|com|ps1)$/, '');
