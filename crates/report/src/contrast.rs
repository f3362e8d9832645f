//! Tests of the page's colours: contrast of text and marks in the light and the dark theme (WCAG 2.2, 1.4.3 and
//! 1.4.11), and whether lines stay distinguishable for readers who do not see red or green (the simulation of Viénot,
//! Brettel and Mollon, 1999).

use std::collections::BTreeMap;

use crate::colours::PAGE_CSS as CSS;

type Rgb = [f64; 3];

/// The custom properties of each theme; the dark one changes some of the light one.
fn themes() -> [BTreeMap<String, Rgb>; 2] {
    let (light, rest) = CSS.split_once("@media (prefers-color-scheme:dark)").expect("a dark theme");
    let dark = rest.split_once("}}").expect("its end").0;
    let light = variables(light);
    let mut both = light.clone();
    both.extend(variables(dark));
    [light, both]
}

fn variables(css: &str) -> BTreeMap<String, Rgb> {
    let colour = |text: &str| -> Option<Rgb> {
        let digits = text.trim().strip_prefix('#')?;
        let digits: String = match digits.len() {
            3 => digits.chars().flat_map(|digit| [digit, digit]).collect(),
            _ => digits.to_owned(),
        };
        let channel = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        Some([channel(0)?, channel(2)?, channel(4)?].map(|value| f64::from(value) / 255.0))
    };
    let parts = css.split(['{', ';', '}', '\n']);
    let named = parts.filter_map(|part| part.trim().strip_prefix("--")?.split_once(':'));
    named.filter_map(|(name, value)| Some((name.to_owned(), colour(value)?))).collect()
}

fn linear(value: f64) -> f64 {
    if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
}

fn luminance(colour: Rgb) -> f64 {
    let [r, g, b] = colour.map(linear);
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

fn contrast(a: Rgb, b: Rgb) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// CIE L*a*b* of a colour, as it is seen without red or without green cones if `lost` says so.
fn lab(colour: Rgb, lost: Option<[Rgb; 3]>) -> Rgb {
    let rgb = colour.map(linear);
    let dot = |row: Rgb, rgb: Rgb| row.iter().zip(rgb).map(|(a, b)| a * b).sum::<f64>();
    let rgb = lost.map_or(rgb, |rows| rows.map(|row| dot(row, rgb).clamp(0.0, 1.0)));
    let white = [0.950_47, 1.0, 1.088_83];
    let rows = [
        [0.412_456, 0.357_576, 0.180_437],
        [0.212_673, 0.715_152, 0.072_175],
        [0.019_334, 0.119_192, 0.950_304],
    ];
    let mut xyz = [0.0; 3];
    for (at, (row, white)) in rows.into_iter().zip(white).enumerate() {
        let share = dot(row, rgb) / white;
        xyz[at] = if share > 0.008_856 { share.cbrt() } else { 7.787 * share + 16.0 / 116.0 };
    }
    let [x, y, z] = xyz;
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// In linear RGB.
const NO_RED: [Rgb; 3] =
    [[0.112_38, 0.887_62, 0.0], [0.112_38, 0.887_62, 0.0], [0.004_01, -0.004_01, 1.0]];
const NO_GREEN: [Rgb; 3] =
    [[0.292_75, 0.707_25, 0.0], [0.292_75, 0.707_25, 0.0], [-0.022_34, 0.022_34, 1.0]];

#[test]
fn text_and_marks_stand_out_from_what_they_are_on_in_both_themes() {
    assert!((contrast([0.0; 3], [1.0; 3]) - 21.0).abs() < 1e-9);
    let text = [
        ("ink", "bg"),
        ("ink", "card"),
        ("muted", "bg"),
        ("muted", "card"),
        ("accent", "bg"),
        ("accent", "card"),
        ("warn", "bg"),
        ("warn", "card"),
        ("warn", "warn-bg"),
        ("muted", "warn-bg"),
        ("muted", "bad-bg"),
        ("bad", "bg"),
        ("bad", "card"),
        ("bad", "bad-bg"),
        ("good", "card"),
    ];
    // Names at lines have the lines' colours.
    let lines: Vec<String> = (0..8).map(|n| format!("c{n}")).collect();
    let text = text.into_iter().chain(lines.iter().map(|name| (name.as_str(), "bg")));
    for (theme, colours) in ["light", "dark"].iter().zip(themes()) {
        for (over, under) in text.clone() {
            let seen = contrast(colours[over], colours[under]);
            assert!(seen >= 4.5, "{theme}: {over} on {under} has {seen:.2}");
        }
        let bar = contrast(colours["bar"], colours["ink"]);
        assert!(bar >= 3.0, "{theme}: whiskers on bars have {bar:.2}");
    }
}

#[test]
fn shares_of_a_map_become_steadily_stronger() {
    for (theme, colours) in ["light", "dark"].iter().zip(themes()) {
        let levels: Vec<f64> =
            (0..6).map(|n| contrast(colours[&format!("h{n}")], colours["bg"])).collect();
        assert!(levels.windows(2).all(|pair| pair[1] > 1.15 * pair[0]), "{theme}: {levels:?}");
    }
}

#[test]
fn lines_of_one_dash_pattern_differ_for_those_who_do_not_see_red_or_green() {
    let classes: Vec<String> = (0..12).map(crate::lines::ink).collect();
    let pairs = || (0..12).flat_map(|a| (a + 1..12).map(move |b| (a, b)));
    for (theme, colours) in ["light", "dark"].iter().zip(themes()) {
        for (a, b) in pairs() {
            let parts = [a, b].map(|n: usize| classes[n].split_once(' ').expect("two classes"));
            let [(colour_a, dash_a), (colour_b, dash_b)] = parts;
            if dash_a != dash_b {
                continue;
            }
            for lost in [None, Some(NO_RED), Some(NO_GREEN)] {
                let [x, y] = [colour_a, colour_b].map(|name| lab(colours[name], lost));
                let apart = x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
                assert!(apart > 15.0, "{theme}: lines {a} and {b} are {apart:.1} apart");
            }
        }
    }
}
