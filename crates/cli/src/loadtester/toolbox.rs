//! A private directory of tools for commands: `hey`, and `curl` on machines without one.
//!
//! It holds links to the running binary, which plays whichever tool it is started as. Commands find them through
//! PATH like any other program; nobody looks into the text of a command.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::leftovers::Leftover;

/// Which of our tools commands see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Our `hey` before the machine's (only ours goes through `http_proxy` and follows a scaled clock); `curl` only
    /// where the machine has none.
    OursFirst,
    /// Only tools the machine does not have.
    WhatIsMissing,
}

/// The directory; removed when dropped.
#[derive(Debug)]
pub struct Toolbox {
    directory: Leftover,
    offer: Offer,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Toolbox {
    /// Makes the directory, with links to `binary` (the `seaway` executable).
    pub fn create(binary: &Path, offer: Offer) -> io::Result<Self> {
        let directory = private_directory(&std::env::temp_dir(), &COUNT)?;
        let toolbox = Self { directory: Leftover::new(directory), offer };
        for tool in ["hey", "curl"] {
            let always = offer == Offer::OursFirst && tool == "hey";
            if always || !on_path(tool, std::env::var_os("PATH").as_deref()) {
                symlink(binary, toolbox.directory.path().join(tool))?;
            }
        }
        Ok(toolbox)
    }

    /// The PATH for commands.
    pub fn path(&self) -> OsString {
        let inherited = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
        let ours = self.directory.path().as_os_str();
        let (first, second) = match self.offer {
            Offer::OursFirst => (ours, inherited.as_os_str()),
            Offer::WhatIsMissing => (inherited.as_os_str(), ours),
        };
        let mut path = OsString::from(first);
        path.push(":");
        path.push(second);
        path
    }
}

/// A directory that only we may change. One that is there already may be in use: in another container another process can have
/// our number.
fn private_directory(parent: &Path, count: &AtomicU32) -> io::Result<PathBuf> {
    loop {
        let unique = format!("seaway-tools-{}-{}", std::process::id(), count.fetch_add(1, Ordering::Relaxed));
        let directory = parent.join(unique);
        match DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| directory),
        }
    }
}

/// Whether a program of this name can be started by its name.
pub(super) fn on_path(program: &str, path: Option<&std::ffi::OsStr>) -> bool {
    path.is_some_and(|path| {
        std::env::split_paths(path).any(|directory| {
            std::fs::metadata(directory.join(program))
                .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_come_first_and_the_directory_goes_with_the_box() {
        let toolbox = Toolbox::create(Path::new("/bin/true"), Offer::OursFirst).unwrap();
        let directory = toolbox.directory.path().to_owned();
        assert!(toolbox.path().to_string_lossy().starts_with(&*directory.to_string_lossy()));
        assert_eq!(std::fs::read_link(directory.join("hey")).unwrap(), Path::new("/bin/true"));
        assert_eq!(std::fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
        drop(toolbox);
        assert!(!directory.exists());
    }

    #[test]
    fn processes_of_the_same_number_leave_each_other_alone() {
        let parent = tempfile::tempdir().unwrap();
        let first = private_directory(parent.path(), &AtomicU32::default()).unwrap();
        std::fs::write(first.join("hey"), "").unwrap();
        let second = private_directory(parent.path(), &AtomicU32::default()).unwrap();
        assert_ne!(first, second);
        assert!(first.join("hey").exists());
    }

    #[test]
    fn a_machines_own_tools_are_found() {
        assert!(on_path("sh", Some(std::ffi::OsStr::new("/nowhere:/bin:/usr/bin"))));
        assert!(!on_path("no-such-program", Some(std::ffi::OsStr::new("/bin:/usr/bin"))));
        assert!(!on_path("sh", None));
    }
}
