//! What every command has: help with an example, refusals in one line; and completions, manual pages and the version.

use std::process::{Command, Output};

fn sim(line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tha-firmware-sim")).args(line.split_whitespace()).output().unwrap()
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_command_explains_itself_and_refuses_in_one_line() {
    let help = said(&sim("--help").stdout);
    let list = help.split("Commands:").nth(1).unwrap().split("\n\n").next().unwrap();
    let lines = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> =
        lines.filter_map(|line| line.split_whitespace().next()).filter(|n| *n != "help").collect();
    for expected in ["run", "faults", "boards", "watch", "soak", "completions", "man"] {
        assert!(names.contains(&expected), "{expected} in {names:?}");
    }
    for name in names.into_iter().chain([""]) {
        let help = sim(&format!("{name} --help"));
        assert_eq!(help.status.code(), Some(0), "{name}");
        assert!(
            said(&help.stdout).split("Example").nth(1).unwrap().contains(&format!("tha-firmware-sim {name}"))
        );
        let refused = sim(&format!("{name} --no-such-flag"));
        let line = said(&refused.stderr);
        assert_eq!((refused.status.code(), line.lines().count()), (Some(2), 1), "{line}");
        assert!(line.starts_with("tha-firmware-sim: unexpected argument '--no-such-flag' found"), "{line}");
    }
}

#[test]
fn version_completions_and_manual_page() {
    let version = said(&sim("--version").stdout);
    assert_eq!(version.trim_end(), format!("tha-firmware-sim {}", tha_train::VERSION));
    assert!(said(&sim("completions bash").stdout).contains("cortex-m4f"));
    assert!(said(&sim("man").stdout).contains("tha\\-firmware\\-sim\\-faults(1)"));
    let object: serde_json::Value = serde_json::from_slice(&sim("man --json").stdout).unwrap();
    assert!(object["page"].is_string());
}
