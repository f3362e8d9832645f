//! The report as one self-contained page: no network, no font, nothing that leaves it. Plots are inline SVG, and every
//! figure is there without a script; the script switches cells and references, sorts tables, and draws any visit over
//! time. Colours follow the reader's light or dark setting, and print. Owns how a page is put together; what it says is
//! in `run_page` and `load_page`, the layout in `templates`. Start reading at [`OUTPUT`].

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, value::Serde};
use record::{LoadRecord, RunRecord};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::colours::PAGE_CSS;
use crate::{Options, Output, Render, Written, load_page, run_page};

/// One self-contained page.
pub(crate) static OUTPUT: Output = Output {
    name: "html",
    extension: "html",
    about: "one self-contained page",
    written: Written::WithEveryRun,
    run: Some(Render::Text(render)),
    load: Some(Render::Text(render_load)),
};

/// Every template by its name.
const TEMPLATES: [(&str, &str); 5] = [
    ("macros.html", include_str!("../templates/macros.html")),
    ("page.html", include_str!("../templates/page.html")),
    ("report.html", include_str!("../templates/report.html")),
    ("load.html", include_str!("../templates/load.html")),
    ("site.html", include_str!("../templates/site.html")),
];
/// Classes of the plots, which the picture needs too.
pub(crate) const PLOTS_CSS: &str = include_str!("../templates/plots.css");
const SCRIPT: &str = include_str!("../templates/report.js");
/// Runs before the page is laid out, so that cells that will not be shown need not be.
const EARLY_SCRIPT: &str = "document.documentElement.className='scripted'";
/// Charts that one explores; see its licence beside it.
const UPLOT: &str = include_str!("../vendor/uplot/uPlot.iife.min.js");
const UPLOT_CSS: &str = include_str!("../vendor/uplot/uPlot.min.css");

fn render(record: &RunRecord, _: &Options) -> String {
    page("report.html", &run_page::page(record))
}

fn render_load(record: &LoadRecord, _: &Options) -> String {
    page("load.html", &load_page::page(record))
}

/// What a page has beside its data.
#[derive(Serialize)]
struct Whole<'a, T> {
    policy: String,
    css: String,
    scripts: [&'static str; 3],
    #[serde(flatten)]
    data: &'a T,
}

/// Fills a template with its data, styles and scripts.
pub(crate) fn page(template: &str, data: &impl Serialize) -> String {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    for (name, text) in TEMPLATES {
        environment.add_template(name, text).expect("the built-in templates are well-formed");
    }
    let css = format!("{PAGE_CSS}{PLOTS_CSS}{UPLOT_CSS}");
    let scripts = [EARLY_SCRIPT, UPLOT.trim_end(), SCRIPT.trim_end()];
    let whole = Whole { policy: policy(&css, &scripts), css, scripts, data };
    let page = environment
        .get_template(template)
        .and_then(|template| template.render(Serde(whole)))
        .expect("the built-in template renders every record; a test covers each of its branches");
    // minijinja drops a template's last newline.
    page + "\n"
}

/// The content security policy: nothing is fetched, no form leads elsewhere, and of scripts and styles only those run that the
/// page was made with, by their digests (CSP level 3, section 2.3.1). The charts set styles of elements from their
/// script, which a policy does not concern.
fn policy(css: &str, scripts: &[&str]) -> String {
    let digest = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let scripts: Vec<String> = scripts.iter().map(|text| digest(text)).collect();
    format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'self'",
        digest(css),
        scripts.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_what_the_page_has_and_nothing_else() {
        let page = render(&crate::testdata::run(), &Options::default());
        let between = |from: &str, to: &str| -> Vec<&str> {
            page.split(from).skip(1).filter_map(|rest| Some(rest.split_once(to)?.0)).collect()
        };
        let css = between("<style>", "</style>");
        let scripts = between("<script>", "</script>");
        assert_eq!((css.len(), scripts.len()), (1, 3));
        let policy = policy(css[0], &scripts);
        assert!(
            page.contains(&format!(
                "content=\"{}\"",
                policy.replace('\'', "&#x27;").replace('/', "&#x2f;")
            )),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"));
    }
}
