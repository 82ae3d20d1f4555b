//! Copies of whole disks: what a backup takes and a restore brings back.

use super::node::NodeDisk;
use super::rot::Spoilt;
use super::store::Store;
use bytes::Bytes;
use mirrorlab_model::ports::{DirName, Disk, FileId, FileName};

/// What a disk held at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskCopy {
    dirs: Vec<(DirName, Vec<FileCopy>)>,
}

/// A file in the pieces that it is stored in, and what had rotted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileCopy {
    name: FileName,
    pieces: Vec<Bytes>,
    spoilt: Vec<Spoilt>,
}

impl NodeDisk {
    /// A copy of what processes see. Files that cannot be read are left out, as a backup would leave them.
    pub fn copy(&mut self, store: &mut Store) -> DiskCopy {
        let names = self.tree.list();
        let mut dirs = Vec::new();
        for name in names {
            let mut view = self.view(store);
            let Ok(dir) = view.open_dir(name, false) else { continue };
            let mut files = Vec::new();
            for file in view.list(dir) {
                let Ok(id) = view.open(dir, file) else { continue };
                let mut pieces = Vec::new();
                if view.read(id, 0, view.len(id), &mut pieces).is_ok() {
                    files.push((id, FileCopy { name: file, pieces, spoilt: Vec::new() }));
                }
            }
            let rotten = |(id, file): (FileId, FileCopy)| FileCopy { spoilt: self.rotten.of(id.0).to_vec(), ..file };
            dirs.push((name, files.into_iter().map(rotten).collect()));
        }
        DiskCopy { dirs }
    }

    /// Replaces everything by a copy, which is durable then.
    pub fn restore(&mut self, store: &mut Store, copy: &DiskCopy) {
        self.wipe(store);
        let mut rotten = Vec::new();
        let mut view = self.view(store);
        for (name, files) in &copy.dirs {
            let Ok(dir) = view.open_dir(*name, true) else { continue };
            for FileCopy { name, pieces, spoilt } in files {
                let Ok(id) = view.create(dir, *name) else { continue };
                for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
                    let _ = view.append(id, piece.clone());
                }
                rotten.push((id, spoilt));
            }
        }
        rotten.into_iter().for_each(|(id, spoilt)| self.rotten.set(id.0, spoilt.clone()));
        self.write_back(store);
    }
}
