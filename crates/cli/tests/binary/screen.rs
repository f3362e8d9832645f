//! The live screen of `joust load`, on a real terminal. Start reading at [`on_terminal`].

use std::process::Command;

use super::Server;
use super::pty::OnTerminal;

/// The sequences that enter and leave the alternate screen.
const TAKEN: &str = "\u{1b}[?1049h";
const GIVEN_BACK: &str = "\u{1b}[?1049l";
const CURSOR_SHOWN: &str = "\u{1b}[?25h";
/// Part of a column of the chart: there was a reply. (Spaces of a frame are not drawn, so a test can only wait for
/// single words.)
const COLUMN: &str = "█";

fn on_terminal(server: &Server, args: &[&str]) -> OnTerminal {
    let mut all = vec!["load", &server.url];
    all.extend(args);
    OnTerminal::start(24, 80, env!("CARGO_BIN_EXE_joust"), &all).expect("it starts")
}

/// Asserts that the terminal is restored and the report was printed; `output` checks the terminal's mode.
fn ends_in_order(running: OnTerminal, code: i32) {
    let output = running.output().expect("it ends");
    let drawn = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{drawn}");
    let last = |what: &str| drawn.rfind(what).unwrap_or_else(|| panic!("no {what:?} in {drawn:?}"));
    assert!(last(TAKEN) < last(GIVEN_BACK) && last(TAKEN) < last(CURSOR_SHOWN), "{drawn:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("requests/s over"), "{drawn:?}");
}

#[test]
fn the_screen_goes_when_the_load_is_over_and_the_report_comes() {
    let server = Server::start(&["--fixed", "1000"]);
    let mut running = on_terminal(&server, &["-d", "1s"]);
    running.wait_for("Requests/s");
    ends_in_order(running, 0);
}

#[test]
fn q_and_ctrl_c_and_signals_end_the_load_in_order() {
    let server = Server::start(&["--fixed", "1000"]);
    for key in ["q", "\u{3}"] {
        let mut running = on_terminal(&server, &["-d", "10m"]);
        running.wait_for(COLUMN);
        running.press(key);
        ends_in_order(running, 3);
    }
    for signal in ["INT", "TERM"] {
        let mut running = on_terminal(&server, &["-d", "10m"]);
        running.wait_for(COLUMN);
        let pid = running.id().to_string();
        let killed = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(killed.expect("kill runs").success());
        ends_in_order(running, 3);
    }
}

#[test]
fn space_freezes_the_picture_while_measuring_goes_on() {
    let server = Server::start(&["--fixed", "1000"]);
    let mut running = on_terminal(&server, &["-d", "10m"]);
    running.wait_for(COLUMN);
    running.press(" ");
    running.wait_for("FROZEN");
    running.press("q");
    ends_in_order(running, 3);
}

#[test]
fn quiet_and_plain_take_no_terminal() {
    let server = Server::start(&["--fixed", "1000"]);
    let quiet = on_terminal(&server, &["-d", "300ms", "--quiet"]).output().expect("it ends");
    assert_eq!(
        (quiet.status.code(), &*quiet.stderr, &*quiet.stdout),
        (Some(0), &b""[..], &b""[..])
    );
    let plain = on_terminal(&server, &["-d", "300ms", "--plain"]).output().expect("it ends");
    let drawn = String::from_utf8_lossy(&plain.stderr);
    assert!(plain.status.success() && !drawn.contains(TAKEN), "{drawn:?}");
}

#[test]
fn agents_of_a_fleet_are_on_the_screen() {
    let Some(fleet) = crate::fleet::Fleet::start(2) else { return };
    let url = fleet.url();
    let load = ["--fleet", &url, "-d", "60", "-c", "4", "--think", "20ms"];
    let mut running = on_terminal(fleet.server.as_ref().unwrap(), &load);
    running.wait_for("lateness");
    running.wait_for("a2");
    running.wait_for(COLUMN);
    running.press("q");
    ends_in_order(running, 3);
    fleet.wait_for_no_load();
}
