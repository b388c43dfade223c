//! Files of ours that must not outlive the process, also when it leaves in a hurry.
//!
//! Each is removed by its owner when that is dropped; this list is for the one exit that drops nothing: the second Ctrl-C.
//! A kill leaves them behind, and nothing here can help that.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static PATHS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file or directory of ours; removed when dropped, or by [`sweep`].
#[derive(Debug)]
pub struct Leftover(PathBuf);

impl Leftover {
    /// `path` is ours from now on.
    pub fn new(path: PathBuf) -> Self {
        paths().push(path.clone());
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Leftover {
    fn drop(&mut self) {
        remove(&self.0);
        paths().retain(|path| *path != self.0);
    }
}

/// Removes everything that is still there.
pub fn sweep() {
    for path in paths().drain(..) {
        remove(&path);
    }
}

fn remove(path: &Path) {
    let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    if let Err(error) = removed
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::debug!(%error, path = %path.display(), "a file of ours was not removed");
    }
}

fn paths() -> MutexGuard<'static, Vec<PathBuf>> {
    PATHS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ours_goes_with_its_owner() {
        let folder = tempfile::TempDir::new().unwrap();
        let (file, directory) = (folder.path().join("file"), folder.path().join("directory"));
        std::fs::write(&file, "").unwrap();
        std::fs::create_dir(&directory).unwrap();
        let (first, second) = (Leftover::new(file.clone()), Leftover::new(directory.clone()));
        drop(first);
        assert!(!file.exists() && directory.exists());
        assert_eq!(second.path(), directory);
        std::fs::write(directory.join("inner"), "").unwrap();
        drop(second);
        assert!(!directory.exists());
    }
}
