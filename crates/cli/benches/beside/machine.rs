//! The machine, its kernel, the peers' packages and the date, in words. Start reading at [`machine`].

use std::process::Command;

/// All of it; `packages` are Debian package names.
pub fn machine(packages: &[&str]) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let models: Vec<&str> = cpus.lines().filter(|line| line.starts_with("model name")).collect();
    let model =
        models.first().and_then(|line| line.split_once(": ")).map_or("unknown CPU", |it| it.1);
    let kernel = read("/proc/sys/kernel/osrelease");
    let congestion_control = read("/proc/sys/net/ipv4/tcp_congestion_control");
    format!(
        "{} x {model}, server on one CPU and generator on another; Linux {}, TCP by {}; {}; {}",
        models.len(),
        kernel.trim(),
        congestion_control.trim(),
        versions(packages),
        jiff::Zoned::now().date(),
    )
}

/// The peers' versions, as Debian numbers them.
fn versions(packages: &[&str]) -> String {
    let asked = Command::new("dpkg-query")
        .args(["--show", "--showformat", "${Package} ${Version}, "])
        .args(packages)
        .output();
    let text = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    match text.trim_end_matches(", ") {
        "" => "versions of the peers unknown".to_owned(),
        known => known.to_owned(),
    }
}
