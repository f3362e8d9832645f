//! Renders a run file, or made-up runs, in every output, to look at them while working on one:
//! `cargo run -p joust-report --example render -- FOLDER [run.json]`.

use std::path::Path;
use std::{env, fs, io};

use joust_report::{Detail, FigureFile, OUTPUTS, Options, figure_files, load_figure_files};
use record::{LoadRecord, RunRecord};

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
    let text = text.run.as_ref().ok_or("text shows runs")?;
    fs::write(folder.join("narrow.txt"), text.bytes(&testdata::run(), &narrow))?;
    let full = Options { detail: Detail::Full, ..narrow };
    fs::write(folder.join("cells-full.txt"), text.bytes(&testdata::celled(), &full))?;
    render_load(folder, &testdata::load())?;
    let load =
        joust_report::load_text(&testdata::load(), &Options { colour: true, ..Options::default() });
    Ok(fs::write(folder.join("load.txt"), load)?)
}

fn render(folder: &Path, name: &str, record: &RunRecord) -> io::Result<()> {
    for output in OUTPUTS {
        let Some(run) = &output.run else { continue };
        let bytes = run.bytes(record, &Options::default());
        fs::write(folder.join(format!("{name}-{}.{}", output.name, output.extension)), bytes)?;
    }
    figures(&folder.join(format!("{name}-figures")), &figure_files(record))
}

fn render_load(folder: &Path, record: &LoadRecord) -> io::Result<()> {
    for output in OUTPUTS {
        let Some(load) = &output.load else { continue };
        let bytes = load.bytes(record, &Options::default());
        fs::write(folder.join(format!("load-{}.{}", output.name, output.extension)), bytes)?;
    }
    figures(&folder.join("load-figures"), &load_figure_files(record))
}

fn figures(folder: &Path, files: &[FigureFile]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let fonts = joust_report::Fonts::installed().ok();
    for FigureFile { name, svg } in files {
        if let Some(png) = fonts.as_ref().and_then(|fonts| fonts.png(svg)) {
            fs::write(folder.join(format!("{name}.png")), png)?;
        }
        fs::write(folder.join(format!("{name}.svg")), svg)?;
    }
    Ok(())
}
