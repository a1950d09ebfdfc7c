//! The programs of PostgreSQL, and the user who may run them. It does not know of clusters.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Where Debian's packages install each version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// The variable of the environment that forbids to skip tests.
const REQUIRED: &str = "TABLESDK_TEST_POSTGRES_REQUIRED";
/// Together with `pg_ctl`, which tests do not need.
const NEEDED: [&str; 3] = ["initdb", "postgres", "pg_basebackup"];

/// The programs of one version.
#[derive(Clone, Debug)]
pub struct Programs {
    directory: PathBuf,
    version: u32,
    /// User and group that run them. `None` is the test's own user.
    user: Option<(u32, u32)>,
}

impl Programs {
    /// Those in `PATH`, or else the newest ones of Debian's packages. `None` if there are none,
    /// which standard error says once.
    ///
    /// # Panics
    ///
    /// If there are none and `TABLESDK_TEST_POSTGRES_REQUIRED` is `1`.
    pub fn find() -> Option<Self> {
        static FOUND: OnceLock<Option<Programs>> = OnceLock::new();
        let found = FOUND.get_or_init(|| {
            let found = look();
            if found.is_none() {
                // Not by a macro, whose output the test runner would keep.
                let mut error = std::io::stderr().lock();
                writeln!(
                    error,
                    "SKIPPED: the tests with PostgreSQL. Neither PATH nor {DEBIAN} has {}: install Debian's package postgresql, or its like",
                    NEEDED.join(", ")
                )
                .ok();
            }
            found
        });
        let is_required = env::var(REQUIRED).is_ok_and(|value| value == "1");
        assert!(
            found.is_some() || !is_required,
            "there is no PostgreSQL, and {REQUIRED} is 1"
        );
        found.clone()
    }

    /// The major version.
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// A command that runs the program as a user who is not root, in a directory.
    pub(super) fn command(&self, name: &str, directory: &Path) -> Command {
        self.as_user(self.path(name), directory)
    }

    /// Where the program is.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A command that runs any program as the user of these programs.
    pub(super) fn as_user(&self, program: impl AsRef<OsStr>, directory: &Path) -> Command {
        let mut command = Command::new(program);
        // The user may have no access to the current one.
        command.current_dir(directory);
        // Variables such as PGPORT would reach the programs.
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("PG")) {
                command.env_remove(name);
            }
        }
        #[cfg(unix)]
        if let Some((user, group)) = self.user {
            use std::os::unix::process::CommandExt as _;

            command.uid(user).gid(group);
        }
        command
    }

    /// A new temporary directory of the user of these programs.
    pub(super) fn directory(&self) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory can be created");
        #[cfg(unix)]
        if let Some((user, group)) = self.user {
            std::os::unix::fs::chown(directory.path(), Some(user), Some(group))
                .expect("root may give a directory away");
        }
        directory
    }

    /// Writes a file that only the user of these programs may read.
    pub(super) fn write(&self, path: &Path, text: &str) {
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).expect("a file can be created");
        file.write_all(text.as_bytes())
            .expect("a file can be written");
        #[cfg(unix)]
        if let Some((user, group)) = self.user {
            std::os::unix::fs::chown(path, Some(user), Some(group))
                .expect("root may give a file away");
        }
    }
}

fn look() -> Option<Programs> {
    // The cluster depends on signals.
    if !cfg!(unix) {
        return None;
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let listed = env::split_paths(&path).filter_map(|directory| {
        // Links in PATH may name some of the programs only.
        let program = fs::canonicalize(directory.join("postgres")).ok()?;
        program.parent().map(Path::to_owned)
    });
    let packages = fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let packages = packages.map(|entry| entry.path().join("bin"));
    let mut packages: Vec<_> = packages
        .filter_map(|directory| Some((version(&directory)?, directory)))
        .collect();
    packages.sort_unstable_by(|left, right| right.cmp(left));
    let packages = packages.into_iter().map(|(_, directory)| directory);
    let mut directories = listed.chain(packages);
    let directory = directories.find(|directory| {
        let mut needed = NEEDED.iter();
        needed.all(|name| directory.join(name).is_file())
    })?;
    Some(Programs {
        version: version(&directory)?,
        user: user(),
        directory,
    })
}

/// The major version of the programs in a directory.
fn version(directory: &Path) -> Option<u32> {
    let output = Command::new(directory.join("postgres"))
        .arg("--version")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    // Such as `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, or `18beta1`.
    let text = text.split(' ').nth(2)?;
    let digits = text.split(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// PostgreSQL refuses to run as root.
fn user() -> Option<(u32, u32)> {
    let id = |arguments: &[&str]| -> Option<u32> {
        let output = Command::new("id").args(arguments).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    };
    (id(&["-u"])? == 0).then_some(())?;
    let nobody = id(&["-u", "nobody"]).zip(id(&["-g", "nobody"]));
    Some(nobody.expect("there is a user nobody"))
}
