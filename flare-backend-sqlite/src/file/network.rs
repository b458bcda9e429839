//! Takes a directory; gives the kind of file system it is on, and the refusal of those that several
//! machines share: processes of two machines have no memory in common, so the log of a database there is
//! not kept from being overwritten.

use std::path::Path;

use flare_core::{Error, ErrorKind, Result};

use crate::error;

/// What a directory is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileSystem {
    /// One that this machine alone writes to, as far as can be known.
    Local,
    /// One that others may write to, by its name.
    Shared(String),
}

/// File systems that machines share, by the number the system has for them.
const SHARED: &[(u32, &str)] = &[
    (0x0000_6969, "NFS"),
    (0x0000_517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB2"),
    (0x0102_1997, "9P"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x00C3_6400, "Ceph"),
    (0x0BD0_0BD0, "Lustre"),
    (0x0116_1970, "GFS2"),
    (0x7461_636F, "OCFS2"),
    (0x4750_4653, "GPFS"),
    (0x786F_4256, "VirtualBox shared folder"),
    (0xBACB_ACBC, "VMware shared folder"),
];

/// What programs present as a file system: only its name tells what is behind it.
const FUSE: u32 = 0x6573_5546;

/// What those are called that reach another machine.
const SHARED_PROGRAMS: &[&str] = &[
    "sshfs",
    "glusterfs",
    "s3fs",
    "rclone",
    "cephfs",
    "ceph",
    "smbnetfs",
    "davfs",
    "goofys",
    "gcsfuse",
    "blobfuse",
    "juicefs",
    "moosefs",
    "mfs",
    "curlftpfs",
    "nfs",
    "beegfs",
    "seaweedfs",
    "geesefs",
];

impl FileSystem {
    /// What `folder` is on.
    #[cfg(target_os = "linux")]
    pub(crate) fn of(folder: &Path) -> Result<Self> {
        let found = rustix::fs::statfs(folder).map_err(|error| {
            let what = format!("the file system of {}", folder.display());
            error::from_io("open", what, error.into())
        })?;
        // The system's own type for it differs from machine to machine; the numbers have 32 bits.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "32 bits count")]
        let number = found.f_type as u32;
        let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Ok(Self::known(number, || mounted_program(&mounts(), folder)))
    }

    /// Elsewhere nothing is known.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn of(_: &Path) -> Result<Self> {
        Ok(Self::Local)
    }

    fn known(number: u32, program: impl FnOnce() -> Option<String>) -> Self {
        if let Some((_, name)) = SHARED.iter().find(|(shared, _)| *shared == number) {
            return Self::Shared((*name).to_owned());
        }
        if number != FUSE {
            return Self::Local;
        }
        match program() {
            Some(name) if SHARED_PROGRAMS.iter().any(|shared| name.contains(shared)) => {
                Self::Shared(name)
            }
            _ => Self::Local,
        }
    }

    /// Why no database can be on it.
    pub(crate) fn refusal(&self, path: &Path) -> Option<Error> {
        let Self::Shared(name) = self else { return None };
        let detail = format!(
            "{} is on a file system that machines share ({name}): several processes of one machine may \
             open a file, processes of two would corrupt it; use a disk of this machine's own",
            path.display()
        );
        Some(error::of(ErrorKind::Unsupported, "open", detail).with_field("path"))
    }
}

/// The type of the mount that a directory is on: the one with the longest path.
fn mounted_program(mounts: &str, folder: &Path) -> Option<String> {
    let mount = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let at = left.split(' ').nth(4)?.replace("\\040", " ");
        let kind = right.split(' ').next()?.to_owned();
        folder.starts_with(&at).then_some((at.len(), kind))
    };
    mounts.lines().filter_map(mount).max_by_key(|(length, _)| *length).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /mnt/far rw - fuse.sshfs host:/srv rw
31 22 0:41 / /mnt/far/near rw - fuse.mergerfs a:b rw
32 22 0:42 / /mnt/two\\040words rw - fuse.glusterfs g rw";

    #[test]
    fn what_machines_share_is_refused_by_name() {
        let none = || panic!("only a program's file system has one");
        assert_eq!(FileSystem::known(0x6969, none), FileSystem::Shared("NFS".to_owned()));
        assert_eq!(FileSystem::known(0xFF53_4D42, none), FileSystem::Shared("CIFS".to_owned()));
        for local in [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x794C_7630, 0x2FC1_2FC1] {
            assert_eq!(FileSystem::known(local, none), FileSystem::Local, "{local:x}");
        }
        let refusal = FileSystem::Shared("NFS".to_owned()).refusal(Path::new("/mnt/a.db")).unwrap();
        assert_eq!(refusal.kind(), ErrorKind::Unsupported);
        assert!(refusal.to_string().contains("machines share (NFS)"), "{refusal}");
        assert!(FileSystem::Local.refusal(Path::new("/a.db")).is_none());
    }

    #[test]
    fn a_program_s_file_system_is_known_by_its_mount() {
        let program = |folder: &str| mounted_program(MOUNTS, Path::new(folder));
        assert_eq!(program("/mnt/far/deep").as_deref(), Some("fuse.sshfs"));
        assert_eq!(program("/mnt/far/near/x").as_deref(), Some("fuse.mergerfs"));
        assert_eq!(program("/mnt/two words").as_deref(), Some("fuse.glusterfs"));
        assert_eq!(program("/srv").as_deref(), Some("ext4"));
        let of = |folder: &str| FileSystem::known(FUSE, || program(folder));
        assert_eq!(of("/mnt/far"), FileSystem::Shared("fuse.sshfs".to_owned()));
        assert_eq!(of("/mnt/far/near"), FileSystem::Local);
        assert_eq!(FileSystem::known(FUSE, || None), FileSystem::Local);
    }

    #[test]
    fn numbers_are_listed_once() {
        let mut numbers: Vec<u32> = SHARED.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        assert!(numbers.is_sorted_by(|a, b| a < b));
    }
}
