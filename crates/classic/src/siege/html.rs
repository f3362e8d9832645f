//! The parts of a page, as siege's parser finds them. Owns its way of taking tags apart, which is not
//! that of a browser: quotes are no quotes, a tag is words between spaces and `=`. Start reading at
//! [`parts`].

use super::conf::begins;
use super::urls::Url;

/// Longest tag that is looked at.
const TAG_MAX: usize = 4095;

const SPACES: &str = " =";
const QUOTES: &str = " \"'";
const BOTH: &str = " =\"'";

/// A part of a page, and whether it is where the page wants to be reloaded from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) url: Url,
    pub(super) is_redirect: bool,
}

/// Adds the parts of a page to those that are not fetched yet.
pub(super) fn parts(page: &str, base: &Url, found: &mut Vec<Part>) {
    let page = page.split('\0').next().unwrap_or_default().replace('\\', "");
    let mut left = page.as_str();
    while let Some(at) = left.find('<') {
        left = &left[at + 1..];
        if let Some(comment) = left.strip_prefix("!--") {
            left = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            // The character behind either is passed over.
            left = behind_first(left);
            continue;
        }
        let mut end = left.find('>').unwrap_or(left.len());
        if end > TAG_MAX {
            end = (0..=TAG_MAX).rev().find(|at| left.is_char_boundary(*at)).unwrap_or(0);
        }
        tag(&left[..end], base, found);
        left = behind_first(&left[end..]);
    }
}

fn behind_first(text: &str) -> &str {
    let mut chars = text.chars();
    chars.next();
    chars.as_str()
}

/// Words of a tag, as strtok_r(3) gives them.
struct Words<'a> {
    left: &'a str,
}

impl<'a> Words<'a> {
    fn next(&mut self, between: &str) -> Option<&'a str> {
        let word = self.left.trim_start_matches(|c| between.contains(c));
        if word.is_empty() {
            self.left = "";
            return None;
        }
        let end = word.find(|c| between.contains(c)).unwrap_or(word.len());
        self.left = behind_first(&word[end..]);
        Some(&word[..end])
    }

    /// Passes over words up to one that begins so; whether there is one.
    fn seek(&mut self, with: &str) -> bool {
        while let Some(word) = self.next(SPACES) {
            if begins(word, with) {
                return true;
            }
        }
        false
    }
}

fn tag(text: &str, base: &Url, found: &mut Vec<Part>) {
    let mut words = Words { left: text };
    let first = words.next(SPACES);
    let mut word = first;
    while let Some(at) = word {
        if begins(at, "href") || begins(at, "location.href") {
            words.next(BOTH);
        } else if begins(at, "meta") {
            meta(&mut words, base, found);
        } else if begins(at, "img") {
            if let Some(again) = image(&mut words, base, found) {
                word = Some(again);
                continue;
            }
        } else if begins(at, "link") {
            link(&mut words, base, found);
        } else if begins(at, "script") {
            while words.seek("src") {
                if let Some(source) = words.next(QUOTES).filter(|source| !source.starts_with('+')) {
                    add(found, base.resolve(source), false);
                }
            }
        } else if begins(at, "frame") {
            while words.seek("src") {
                words.next(BOTH);
            }
        } else if begins(at, "background")
            && let Some(source) = words.next(QUOTES)
            && first.is_some_and(|first| first.eq_ignore_ascii_case("body"))
        {
            add(found, base.resolve(source), false);
        }
        word = words.next(SPACES);
    }
}

fn meta(words: &mut Words<'_>, base: &Url, found: &mut Vec<Part>) {
    while words.seek("content") {
        while let Some(word) = words.next(SPACES) {
            if word.to_ascii_lowercase().contains("url")
                && let Some(target) = words.next(QUOTES)
            {
                add(found, base.resolve(target), true);
            }
        }
    }
}

/// Gives back a word that is to be looked at again.
fn image<'a>(words: &mut Words<'a>, base: &Url, found: &mut Vec<Part>) -> Option<&'a str> {
    let word = words.next(SPACES)?;
    if words.left.starts_with("\"\"") {
        return Some(word);
    }
    if !begins(word, "src") {
        while words.seek("src") {
            let source = words.next(QUOTES);
            if let Some(source) = source.filter(|source| source.len() > 1 && !is_inline(source)) {
                add(found, base.resolve(source), false);
            }
        }
        return None;
    }
    let source = words.next(QUOTES)?;
    if is_inline(source) {
        return Some(source);
    }
    let url = base.resolve(source);
    if !url.whole.ends_with('+') {
        add(found, url, false);
    }
    None
}

fn is_inline(source: &str) -> bool {
    begins(source, "data:image")
}

fn link(words: &mut Words<'_>, base: &Url, found: &mut Vec<Part>) {
    let (mut is_wanted, mut target) = (false, None);
    while let Some(mut word) = words.next(SPACES) {
        if begins(word, "rel") {
            let Some(relation) = words.next(BOTH) else { break };
            is_wanted |= begins(relation, "stylesheet");
            is_wanted &= !begins(relation, "next") && !begins(relation, "alternate");
            word = relation;
        }
        if begins(word, "href") {
            target = words.next(QUOTES).or(target);
        }
    }
    if let Some(target) = target.filter(|_| is_wanted) {
        add(found, base.resolve(target), false);
    }
}

/// Adds one that is not there.
fn add(found: &mut Vec<Part>, url: Url, is_redirect: bool) {
    let is_there = found.iter().any(|part| part.url.whole.eq_ignore_ascii_case(&url.whole));
    if url.host.len() >= 2 && !is_there {
        found.push(Part { url, is_redirect });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(page: &str) -> Vec<String> {
        let mut found = Vec::new();
        let base = Url::new("http://h.test:81/d/page", true, "");
        parts(page, &base, &mut found);
        let shown = |part: &Part| {
            let url = part.url.whole.trim_start_matches("http://h.test:81");
            if part.is_redirect { format!("-> {url}") } else { url.to_owned() }
        };
        found.iter().map(shown).collect()
    }

    #[test]
    fn parts_are_images_scripts_style_sheets_and_the_body_s_background() {
        let page = "<link rel=\"stylesheet\" href=\"/s.css\"><link href='/i.ico' rel='icon'>\
            <link rel=alternate href=/no><script src=\"/j.js\"></script>\
            <body background=\"/bg.png\"><!-- <img src=/c.png> --> <img src='/a.png'>\
            <IMG alt=x SRC=b.png /><iframe src=/f><frame src=/g><embed src=/e><a href=/l>\
            <video src=/v><img src=/a.png>";
        assert_eq!(found(page), ["/s.css", "/j.js", "/bg.png", "/a.png", "/d/b.png"]);
    }

    #[test]
    fn what_a_browser_reads_otherwise_is_read_as_siege_reads_it() {
        assert_eq!(found("<img src = \"/a.png\">"), ["/d/="], "spaces around =");
        assert_eq!(found("<img\nsrc=\"/a.png\">"), [""; 0], "a line's end in a tag");
        assert_eq!(found("<img src=\"/a b.png\">"), ["/a"], "a space in a value");
        assert_eq!(found("<img src=b.png/>"), ["http://b.png/"], "a slash behind it: a host");
        assert_eq!(found("<img srcset=\"/a 2x\" src=\"/b\">"), ["/a"], "srcset is a src");
        assert_eq!(found("<script>x='<img src=/a>'</script>"), ["/a"], "a string in a script");
        assert_eq!(found("<img src=\"\"><img src=\"data:image/png;base64,x\">"), [""; 0]);
    }

    #[test]
    fn a_refresh_is_told_apart() {
        let page = "<meta http-equiv=\"refresh\" content=\"0; url=/next\"><img src=/a>";
        assert_eq!(found(page), ["-> /next", "/a"]);
    }
}
