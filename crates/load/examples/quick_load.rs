//! One load, and its figures on a line: `quick_load URL CONNECTIONS SECONDS [CPU] [close]`. For
//! comparisons with other generators; it owns nothing else. Start reading at [`main`].
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::sync::atomic::AtomicBool;

use units::Nanos;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, connections, seconds, more @ ..] = args.as_slice() else {
        return Err("usage: quick_load URL CONNECTIONS SECONDS [CPU] [close]".into());
    };
    let mut options = joust_load::LoadOptions::new(url);
    options.connections = connections.parse()?;
    options.duration = Some(Nanos::from_secs_f64(seconds.parse()?));
    for word in more {
        match word.as_str() {
            "close" => options.keep_alive = false,
            cpu => options.cpus = vec![cpu.parse()?],
        }
    }
    let interrupt = AtomicBool::new(false);
    let record = joust_load::run(&options.plan()?, &joust_load::Control::new(&interrupt))?;
    println!(
        "rate_per_s {:.0} cpu_us {:.3} busy {:.3} p50_ms {:?} p99_ms {:?} lag_max {} {:?} {:?}",
        record.rate_per_s,
        record.cpu_us_per_request.unwrap_or(0.0),
        record.client.busiest(),
        record.service_ms.p50,
        record.service_ms.p99,
        record.client.lag_max,
        record.requests,
        record.errors,
    );
    Ok(())
}
