//! Renders a run file, or made-up runs, in every output, to look at them while working on one:
//! `cargo run -p joust-report --example render -- FOLDER [run.json]`.

use std::path::Path;
use std::{env, fs, io};

use joust_report::{Detail, OUTPUTS, Options};
use record::RunRecord;

#[path = "../src/testdata.rs"]
mod testdata;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = env::args().skip(1);
    let folder = args.next().ok_or("usage: render FOLDER [run.json]")?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    if let Some(file) = args.next() {
        render(folder, "run", &RunRecord::from_json(&fs::read_to_string(file)?)?)?;
        return Ok(());
    }
    render(folder, "run", &testdata::run())?;
    render(folder, "two", &testdata::run_with(2))?;
    render(folder, "twelve", &testdata::run_with(12))?;
    render(folder, "failed", &testdata::all_failed())?;
    render(folder, "cells", &testdata::celled())?;
    render(folder, "grid", &testdata::grid())?;
    let narrow = Options { width: 80, ..Options::default() };
    let text = joust_report::output("text").ok_or("text is an output")?;
    fs::write(folder.join("narrow.txt"), (text.render)(&testdata::run(), &narrow))?;
    let full = Options { detail: Detail::Full, ..narrow };
    fs::write(folder.join("cells-full.txt"), (text.render)(&testdata::celled(), &full))?;
    let load =
        joust_report::load_text(&testdata::load(), &Options { colour: true, ..Options::default() });
    fs::write(folder.join("load.txt"), load)?;
    let html = joust_report::output("html")
        .and_then(|output| output.render_load)
        .ok_or("html shows loads")?;
    Ok(fs::write(folder.join("load.html"), html(&testdata::load(), &Options::default()))?)
}

fn render(folder: &Path, name: &str, record: &RunRecord) -> io::Result<()> {
    for output in OUTPUTS {
        let bytes = (output.render)(record, &Options::default());
        fs::write(folder.join(format!("{name}-{}.{}", output.name, output.extension)), bytes)?;
    }
    Ok(())
}
