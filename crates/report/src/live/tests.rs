//! Frames of the live screen, drawn into memory.

use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use record::{Engine, Interval, LoadPlan, LoadStop, Share};
use units::Nanos;

use super::*;
use crate::testdata;

/// A load of ten seconds that has run for `n_intervals` intervals of 100 ms, `rate_per_s` in each; in
/// those of `dying` one request in ten fails.
struct Load {
    rate_per_s: u64,
    n_intervals: u64,
    dying: std::ops::Range<u64>,
}

impl Load {
    fn plan() -> LoadPlan {
        let mut plan = testdata::load().plan;
        plan.url = "http://127.0.0.1:8080/index.html".to_owned();
        plan.stop = LoadStop { requests: None, duration: Some(Nanos::from_secs(10)) };
        (plan.connections, plan.threads, plan.engine) = (100, 2, Engine::Epoll);
        plan
    }

    fn live(&self) -> Live {
        let mut live = Live::new(&Self::plan());
        (0..self.n_intervals).for_each(|n| live.add(&self.interval(n)));
        live
    }

    fn interval(&self, n: u64) -> Interval {
        let length = Nanos::from_millis(100);
        let mut interval = Interval::new(Nanos(n * length.0), length);
        // A rate that breathes and latencies with a tail, by arithmetic.
        let ended = self.rate_per_s * (90 + n * 7 % 20) / 1000;
        if self.dying.contains(&n) {
            interval.errors.closed_before_first_byte = ended / 20;
            interval.errors.connect_refused = ended / 20;
        }
        interval.ok = ended - interval.errors.total();
        interval.bytes_read = interval.ok * 3500;
        interval.client_cpu = Nanos::from_millis(if n >= 70 { 180 } else { 90 });
        for request in 0..interval.ok {
            let place = (request * 7919 + n) % 1000;
            let tail = 1_000_000 / (1001 - place);
            interval.response.record(Nanos::from_micros(400 + place + 8 * tail / 10));
        }
        interval
    }
}

fn frame(live: &Live, view: &View, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(live, view, frame)).unwrap();
    terminal
}

#[test]
fn a_load_half_done_at_80x24() {
    let live = Load { rate_per_s: 40_000, n_intervals: 53, dying: 0..0 }.live();
    insta::assert_snapshot!(frame(&live, &View::default(), 80, 24).backend(), @r#"
    " joust load http://127.0.0.1:8080/index.html                                    "
    " 100 connections, 2 threads, epoll, closed loop                                 "
    " ███████████████████████░░░░░░░░░░░░░░░░░░░░░   53 %  5.3 s of 10 s, 4.7 s left "
    "           requests/s  failed     p50     p90     p99     max       read    CPU "
    " last 1 s      39,400       0   2.5ms  9.14ms  74.1ms   402ms   138 MB/s   45 % "
    " whole         39,668       0   2.5ms  9.22ms  68.1ms   402ms   139 MB/s   45 % "
    " Requests/s                                                                     "
    "     50k ┤                                                                      "
    "         │▁▅▂▆▃▆▃▆▄▇▄▇▅▁▅▂▆▃▆▃▆▄▇▄▇▅▁▅▂▆▃▆▃▆▂                                   "
    "         │███████████████████████████████████                                   "
    "     25k ┤███████████████████████████████████                                   "
    "         │███████████████████████████████████                                   "
    "         │███████████████████████████████████                                   "
    "       0 ┤███████████████████████████████████                                   "
    "         └┴────────────┴────────────┴────────────┴────────────┴───────────┴     "
    " Response time (log scale)                                                      "
    "         │⠈⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠁                               max "
    "   100ms ┤⢀⣀⡠⣀⠤⠤⣀⡠⢄⣀⠤⠤⠤⣀⣀⣀⣀⢄⣀⣀⡠⣀⡠⣀⠤⢄⠤⠤⠤⠤⢄⣀⢄⣀⡀                               p99 "
    "         │                                                                      "
    "    10ms ┤⠠⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠄                               p90 "
    "         │⢀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⡀                               p50 "
    "         └┴────────────┴────────────┴────────────┴────────────┴───────────┴     "
    "          0           2s           4s           6s           8s         10s     "
    " q end now   space freeze   d distribution   ? help                             "
    "#);
}

#[test]
fn a_load_with_failures_and_a_busy_generator_at_120x40() {
    let live = Load { rate_per_s: 40_000, n_intervals: 80, dying: 40..50 }.live();
    insta::assert_snapshot!(frame(&live, &View::default(), 120, 40).backend(), @r#"
    " joust load http://127.0.0.1:8080/index.html                             100 connections, 2 threads, epoll, closed loop "
    " ███████████████████████████████████████████████████████████████████░░░░░░░░░░░░░░░░░   80 %  8.0 s of 10 s, 2.0 s left "
    "           requests/s  failed     p50     p90     p99     max       read    CPU                                         "
    " last 1 s      40,600       0   2.5ms  9.22ms  74.1ms   402ms   142 MB/s   90 %                                         "
    " whole         39,313   3,900   2.5ms  9.22ms  74.1ms   402ms   138 MB/s   51 %                                         "
    " Requests/s                                                                                                    x failed "
    "     50k ┤                                                                                                              "
    "         │                                            x  x  x                                                           "
    "         │  ▅  ▅  ▄▁ ▄▃ ▄▆ ▄█ ▄  ▅  ▅  ▄▁ ▄▃ ▄▆ ▄█ ▄ xx xxxxxxx▄▃ ▄▆ ▄█ ▄  ▅  ▅  ▄▁ ▄▃ ▄▆ ▄█ ▄                          "
    "         │▁▇█▃▇█▆▇██▆██▆██▆██▆█▁▇█▃▇█▆▇██▆██▆██▆██▆█xx▃xx▃xx▃x▂██▆██▆██▆█▁▇█▃▇█▆▇██▆██▆██▆██▆█                          "
    "         │██████████████████████████████████████████▁▆█▃▆█▅▆██████████████████████████████████                          "
    "         │████████████████████████████████████████████████████████████████████████████████████                          "
    "         │████████████████████████████████████████████████████████████████████████████████████                          "
    "     25k ┤████████████████████████████████████████████████████████████████████████████████████                          "
    "         │████████████████████████████████████████████████████████████████████████████████████                          "
    "         │████████████████████████████████████████████████████████████████████████████████████                          "
    "         │████████████████████████████████████████████████████████████████████████████████████                          "
    "         │████████████████████████████████████████████████████████████████████████████████████                          "
    "         │████████████████████████████████████████████████████████████████████████████████████                          "
    "       0 ┤████████████████████████████████████████████████████████████████████████████████████                          "
    "         └┴─────────┴──────────┴─────────┴──────────┴─────────┴──────────┴─────────┴──────────┴─────────┴─────────┴     "
    " Response time (log scale)                                                      Distribution of response times          "
    "         │⠈⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠁              max  1.6ms      63,194 █████████▍          "
    "   200ms ┤                                                                        2.5ms      94,281 ██████████████ p50  "
    "         │                                                                          4ms      69,835 ██████████▍         "
    "   100ms ┤                                                                        6.3ms      37,755 █████▋              "
    "         │⠠⠤⠔⠤⠔⠒⠤⠔⠒⠤⠒⠒⠒⠢⠤⠤⠤⠔⠤⠤⠔⠢⠔⠢⠔⠒⠔⠒⠒⠒⠢⠒⠒⠤⠤⠤⠤⠤⠤⠔⠒⠒⠒⠒⠒⠒⠤⠒⠒⠔⠒⠢⠄              p99   10ms      20,773 ███▏                "
    "    50ms ┤                                                                         16ms      11,972 █▊                  "
    "         │                                                                         25ms       6,609 █                   "
    "    20ms ┤                                                                         40ms       4,092 ▋                   "
    "         │                                                                         63ms       2,519 ▍                   "
    "    10ms ┤⠠⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠄              p90  100ms       1,258 ▏ p99               "
    "         │                                                                        160ms         946 ▏                   "
    "     5ms ┤                                                                        250ms         636 ▏                   "
    "         │⢀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⡀              p50  400ms         309 ▏                   "
    "         └┴────────────┴────────────┴────────────┴────────────┴────────────┴      630ms         321 ▏                   "
    "          0           2s           4s           6s           8s          10s                                            "
    " FAILED 1.22 % of all, 0 % of the last second: 1,950 connection refused and 1,950 closed before the first byte          "
    " generator CPU 90 %: it may be the limit, not the server; -t gives more threads                                         "
    " q end now   space freeze   ? help                                                                                      "
    "#);
}

#[test]
fn without_colour_and_beyond_ascii_the_picture_is_still_read() {
    let live = Load { rate_per_s: 1_000, n_intervals: 80, dying: 40..50 }.live();
    let view = View { colour: false, unicode: false, ..View::default() };
    let terminal = frame(&live, &view, 80, 24);
    insta::assert_snapshot!(terminal.backend(), @r#"
    " joust load http://127.0.0.1:8080/index.html                                    "
    " 100 connections, 2 threads, epoll, closed loop                                 "
    " ###################################.........   80 %  8.0 s of 10 s, 2.0 s left "
    "           requests/s  failed     p50     p90     p99     max       read    CPU "
    " last 1 s       1,015       0  2.55ms  10.4ms   161ms   402ms  3.55 MB/s   90 % "
    " whole            984      86  2.55ms  9.55ms  74.1ms   402ms  3.44 MB/s   51 % "
    " Requests/s                                                            x failed "
    "    1200 |   __________   __________xxxxxxx___:_  _________:__                  "
    "         |##########################:::|||####################                  "
    "     600 |####################################################                  "
    "         |####################################################                  "
    "       0 |####################################################                  "
    "         ++------------+------------+------------+------------+-----------+     "
    " Response time (log scale)                                                      "
    "         |        ...::::'''.      ...:::''':         ..::::''              max "
    "   100ms | ....:'''''    ':.::.:::'''''' ':..:....:::'''                    p99 "
    "    10ms | ...................................................              p90 "
    "         | ...................................................              p50 "
    "         ++------------+------------+------------+------------+-----------+     "
    "          0           2s           4s           6s           8s         10s     "
    " FAILED 1.08 % of all, 0 % of the last second: 43 connection refused and 43     "
    " closed before the first byte                                                   "
    " generator CPU 90 %: it may be the limit, not the server; -t gives more threads "
    " q end now   space freeze   d distribution   ? help                             "
    "#);
    for cell in &terminal.backend().buffer().content {
        assert!(cell.symbol().is_ascii() && cell.fg == Color::Reset && cell.bg == Color::Reset);
    }
}

#[test]
fn figures_and_failures_stay_when_there_is_no_room_for_charts() {
    let live = Load { rate_per_s: 1_000, n_intervals: 80, dying: 40..50 }.live();
    insta::assert_snapshot!(frame(&live, &View::default(), 40, 10).backend(), @r#"
    " joust load http://127.0.0.1:8080/index "
    " 100 connections, 2 threads, epoll, clo "
    "  80 %  8.0 s of 10 s, 2.0 s left       "
    "           requests/s  failed     p99   "
    " last 1 s       1,015       0   161ms   "
    " whole            984      86  74.1ms   "
    " FAILED 1.08 % of all, 0 % of the last  "
    " second: 43 connection refused and 43   "
    " closed before the first byte           "
    " q end now   space freeze   ? help      "
    "#);
}

#[test]
fn a_frozen_picture_says_so_and_help_lies_over_it() {
    let live = Load { rate_per_s: 1_000, n_intervals: 80, dying: 0..0 }.live();
    let view = View { help: true, frozen: true, ..View::default() };
    let text = frame(&live, &view, 80, 24).backend().to_string();
    assert!(text.contains("FROZEN at 8 s") && text.contains("end the load now"), "{text}");
}

#[test]
fn where_nothing_failed_nothing_is_said_of_failures() {
    let live = Load { rate_per_s: 1_000, n_intervals: 20, dying: 0..0 }.live();
    let text = frame(&live, &View::default(), 80, 24).backend().to_string();
    assert!(!text.contains("FAILED") && !text.contains("x failed"), "{text}");
}

/// A load with statuses, some of them bad.
fn of_statuses() -> Live {
    let load = Load { rate_per_s: 1_000, n_intervals: 80, dying: 0..0 };
    let mut live = Live::new(&Load::plan());
    for n in 0..load.n_intervals {
        let mut interval = load.interval(n);
        interval.status = [(200, interval.ok - 1), (204, 1), (503, 2)].into();
        interval.errors.unexpected_status = 2;
        live.add(&interval);
    }
    live
}

#[test]
fn statuses_and_the_distribution_of_response_times_are_seen_while_the_load_runs() {
    let view = View { distribution: true, ..View::default() };
    insta::assert_snapshot!(frame(&of_statuses(), &view, 80, 30).backend(), @r#"
    " joust load http://127.0.0.1:8080/index.html                                    "
    " 100 connections, 2 threads, epoll, closed loop                                 "
    " ███████████████████████████████████░░░░░░░░░   80 %  8.0 s of 10 s, 2.0 s left "
    "           requests/s  failed     p50     p90     p99     max       read    CPU "
    " last 1 s       1,015      20  2.55ms  10.4ms   161ms   402ms  3.55 MB/s   90 % "
    " whole            995     160  2.55ms  9.55ms  74.1ms   402ms  3.48 MB/s   51 % "
    " status 2xx: 7,960 (200: 7,880, 204: 80), 5xx: 160 (503: 160)                   "
    " Requests/s                                                            x failed "
    "    1200 ┤xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx                  "
    "         │▃▃▄▅▅▆▆▆▅▅▆▇▇▃▃▄▅▅▆▆▆▅▅▆▇▇▃▃▄▅▅▆▆▆▅▅▆▇▇▃▃▄▅▅▆▆▆▅▅▆▇▇                  "
    "         │████████████████████████████████████████████████████                  "
    "         │████████████████████████████████████████████████████                  "
    "     600 ┤████████████████████████████████████████████████████                  "
    "         │████████████████████████████████████████████████████                  "
    "         │████████████████████████████████████████████████████                  "
    "       0 ┤████████████████████████████████████████████████████                  "
    "         └┴────────────┴────────────┴────────────┴────────────┴───────────┴     "
    " Distribution of response times                                                 "
    "     2ms       2,770 ████████████████████████████████████▉                      "
    "     5ms       3,450 ██████████████████████████████████████████████ p50         "
    "    10ms         979 █████████████ p90                                          "
    "    20ms         417 █████▌                                                     "
    "    50ms         217 ██▉                                                        "
    "   100ms          68 ▉ p99                                                      "
    "   200ms          34 ▌                                                          "
    "   500ms          25 ▍ p99.9                                                    "
    "                                                                                "
    " FAILED 1.97 % of all, 1.93 % of the last second: 160 unexpected status         "
    " generator CPU 90 %: it may be the limit, not the server; -t gives more threads "
    " q end now   space freeze   d distribution   ? help                             "
    "#);
    let both = frame(&of_statuses(), &View::default(), 120, 30).backend().to_string();
    for part in ["Response time (log scale)", "Distribution of response times", "503: 160"] {
        assert!(both.contains(part), "{part}\n{both}");
    }
}

/// Agents, of which some run and the last ones are in trouble.
fn agents(n: u32) -> Vec<AgentFigures> {
    let agent = |index: u32| AgentFigures {
        name: format!("load-{}.example", index + 1),
        share: Share { index, of: n },
        state: match n - index {
            1 => AgentState::Lost,
            2 => AgentState::Suspect,
            _ => AgentState::Running,
        },
        rate_per_s: (index > 0).then_some(1_000.0),
        lateness: (index > 0).then_some(Nanos::from_micros(20 + u64::from(index))),
        clock_error: Some(Nanos::from_micros(90)),
    };
    (0..n).map(agent).collect()
}

#[test]
fn the_worst_of_many_agents_are_on_a_small_screen_beside_both_charts() {
    let mut live = Load { rate_per_s: 40_000, n_intervals: 53, dying: 0..0 }.live();
    live.set_agents(&agents(100));
    let text = frame(&live, &View::default(), 80, 24).backend().to_string();
    let lines: Vec<&str> = text.lines().map(|line| line.trim_matches(['"', ' '])).collect();
    let at = lines.iter().position(|line| line.starts_with("agent ")).expect(&text);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words(lines[at]), "agent state requests/s lateness clock error share");
    assert_eq!(words(lines[at + 1]), "load-100.example lost 1,000 119us 90us 100/100");
    assert_eq!(words(lines[at + 2]), "load-99.example suspect 1,000 118us 90us 99/100");
    assert_eq!(words(lines[at + 3]), "load-98.example running 1,000 117us 90us 98/100");
    assert_eq!(lines[at + 6], "95 more agents: 95 running", "{text}");
    for chart in ["Requests/s", "Response time"] {
        assert!(lines.iter().any(|line| line.starts_with(chart)), "{chart}\n{text}");
    }
    // Few of them leave no line for others.
    live.set_agents(&agents(3));
    let text = frame(&live, &View::default(), 80, 24).backend().to_string();
    assert!(!text.contains("more agents") && text.contains("load-1.example"), "{text}");
}

#[test]
fn where_no_table_fits_agents_are_counted() {
    let mut live = Load { rate_per_s: 1_000, n_intervals: 20, dying: 0..0 }.live();
    live.set_agents(&agents(4));
    let text = frame(&live, &View::default(), 80, 12).backend().to_string();
    assert!(text.contains("4 agents: 1 lost, 1 suspect and 2 running"), "{text}");
}

proptest! {
    #[test]
    fn no_size_and_no_load_makes_a_frame_panic(
        width in 1u16..=200,
        height in 1u16..=80,
        rate_per_s in prop_oneof![Just(0u64), Just(30), Just(20_000)],
        n_intervals in prop_oneof![Just(0u64), Just(1), Just(2), Just(120)],
        (help, frozen, unicode, distribution) in any::<(bool, bool, bool, bool)>(),
        n_agents in prop_oneof![Just(0u32), Just(1), Just(3), Just(300)],
    ) {
        let mut live = Load { rate_per_s, n_intervals, dying: 1..2 }.live();
        live.set_agents(&agents(n_agents));
        let view = View { help, frozen, unicode, colour: unicode, distribution };
        frame(&live, &view, width, height);
    }
}
