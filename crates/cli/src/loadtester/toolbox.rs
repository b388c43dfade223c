//! A private directory of tools for commands: `hey`, and `curl` on machines without one.
//!
//! It holds links to the running binary, which plays whichever tool it is started as. Commands find them through
//! PATH like any other program; nobody looks into the text of a command.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::Path;
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
        let unique = format!("seaway-tools-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(unique);
        // A directory of that name can only be left over from a process that was killed: make it ours again. Creating
        // fails if somebody else owns it, and 0700 keeps others from adding programs to it.
        if directory.exists() {
            std::fs::remove_dir_all(&directory)?;
        }
        DirBuilder::new().mode(0o700).create(&directory)?;
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
    fn a_machines_own_tools_are_found() {
        assert!(on_path("sh", Some(std::ffi::OsStr::new("/nowhere:/bin:/usr/bin"))));
        assert!(!on_path("no-such-program", Some(std::ffi::OsStr::new("/bin:/usr/bin"))));
        assert!(!on_path("sh", None));
    }
}
