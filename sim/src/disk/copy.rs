//! Copies of whole disks: what a backup takes and a restore brings back.

use super::node::NodeDisk;
use super::store::Store;
use bytes::Bytes;
use mirrorlab_model::ports::{DirName, Disk, FileName};

/// What a disk held at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskCopy {
    dirs: Vec<(DirName, Files)>,
}

/// The files of a directory, each in the pieces that it is stored in.
type Files = Vec<(FileName, Vec<Bytes>)>;

impl NodeDisk {
    /// A copy of what processes see. Files that cannot be read are left out, as a backup would leave them.
    pub fn copy(&mut self, store: &mut Store) -> DiskCopy {
        let mut view = self.view(store);
        let mut dirs = Vec::new();
        for name in view.list_dirs() {
            let Ok(dir) = view.open_dir(name, false) else { continue };
            let mut files = Vec::new();
            for file in view.list(dir) {
                let Ok(id) = view.open(dir, file) else { continue };
                let mut pieces = Vec::new();
                if view.read(id, 0, view.len(id), &mut pieces).is_ok() {
                    files.push((file, pieces));
                }
            }
            dirs.push((name, files));
        }
        DiskCopy { dirs }
    }

    /// Replaces everything by a copy, which is durable then.
    pub fn restore(&mut self, store: &mut Store, copy: &DiskCopy) {
        self.wipe(store);
        let mut view = self.view(store);
        for (name, files) in &copy.dirs {
            let Ok(dir) = view.open_dir(*name, true) else { continue };
            for (file, pieces) in files {
                let Ok(id) = view.create(dir, *file) else { continue };
                for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
                    let _ = view.append(id, piece.clone());
                }
            }
        }
        self.write_back(store);
    }
}
