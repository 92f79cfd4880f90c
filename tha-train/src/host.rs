//! What the operating system says about memory, where it says anything.

/// Largest resident memory of this process so far, in MiB (Linux).
pub fn peak_rss_mb() -> Option<f64> {
    Some(kilobytes("/proc/self/status", "VmHWM:")? as f64 / 1024.0)
}

/// Bytes this machine can still give (Linux).
pub fn available_bytes() -> Option<u64> {
    Some(kilobytes("/proc/meminfo", "MemAvailable:")? * 1024)
}

fn kilobytes(file: &str, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn linux_tells_both() {
        assert!(super::peak_rss_mb().unwrap() > 1.0);
        assert!(super::available_bytes().unwrap() > 1 << 20);
    }
}
