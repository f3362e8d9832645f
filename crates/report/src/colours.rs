//! Owns the colours of the light theme for what stands outside of a page: they are read from the page's own style, so
//! that a picture and the page look alike. Start reading at [`light`].

/// The style of pages; its first block has the light colours as custom properties.
pub(crate) const PAGE_CSS: &str = include_str!("../templates/report.css");

/// Names (`--ink`) and colours (`#171a21`) of the light theme.
pub(crate) fn light() -> impl Iterator<Item = (&'static str, &'static str)> {
    let block = PAGE_CSS.split_once('{').map_or("", |(_, rest)| rest);
    let block = block.split_once('}').map_or("", |(block, _)| block);
    let properties = block.split([';', '\n']).filter_map(|part| part.trim().split_once(':'));
    properties.filter(|(name, value)| name.starts_with("--") && value.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_of_a_plot_is_one_of_the_page() {
        let known: Vec<&str> = light().map(|(name, _)| name).collect();
        let css = include_str!("../templates/plots.css");
        let used = css.split("var(").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
        let unknown: Vec<&str> = used.filter(|name| !known.contains(name)).collect();
        assert!(unknown.is_empty() && known.len() > 20, "{unknown:?}");
    }
}
