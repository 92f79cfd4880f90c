//! What the operating system says: about memory, where it says anything, and about files it refuses.

use std::io;

/// The operating system's words about a file, and the remedy where there is one.
pub fn refusal(error: &io::Error) -> String {
    use io::ErrorKind::{
        IsADirectory, NotADirectory, NotFound, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem,
        StorageFull,
    };
    let remedy = match error.kind() {
        NotFound | NotADirectory => "check the path",
        IsADirectory => "name a file",
        PermissionDenied => "check the permissions",
        ReadOnlyFilesystem => "choose another place",
        StorageFull | QuotaExceeded => "make room or choose another place",
        _ => return error.to_string(),
    };
    format!("{error}; {remedy}")
}

/// Largest resident memory of this process so far, in MiB (Linux).
pub fn peak_rss_mb() -> Option<f64> {
    Some(kilobytes("/proc/self/status", "VmHWM:")? as f64 / 1024.0)
}

/// Bytes this machine can still give (Linux).
pub fn available_bytes() -> Option<u64> {
    Some(kilobytes("/proc/meminfo", "MemAvailable:")? * 1024)
}

/// Something that is larger than the memory of this machine.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{what} would take {needed:.1} GB, but only {available:.1} GB are free; {remedy}")]
pub struct TooBig {
    what: &'static str,
    needed: f64,
    available: f64,
    remedy: &'static str,
}

/// Refuses what this machine cannot hold, before it is allocated; where the system does not say, anything may be tried.
pub fn check_room(what: &'static str, bytes: f64, remedy: &'static str) -> Result<(), TooBig> {
    match available_bytes() {
        Some(available) if bytes > available as f64 => {
            Err(TooBig { what, needed: bytes / 1e9, available: available as f64 / 1e9, remedy })
        }
        _ => Ok(()),
    }
}

fn kilobytes(file: &str, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn a_refusal_names_the_remedy() {
        let missing = std::fs::read("no/such/file").unwrap_err();
        assert!(super::refusal(&missing).ends_with("; check the path"));
        let full = std::io::Error::from_raw_os_error(28);
        assert!(super::refusal(&full).contains("make room"));
        assert_eq!(super::refusal(&std::io::Error::other("odd")), "odd");
    }
}
