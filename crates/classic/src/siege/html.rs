//! The parts of a page, as siege's parser finds them. Owns its way of parsing tags, which differs from a browser's:
//! quotes have no meaning, and a tag is words between spaces and `=`. Start reading at [`parts`].

use std::collections::HashSet;

use super::conf::begins;
use super::urls::Url;

/// Most parts that a user has yet to fetch. A page whose parts are pages would otherwise make it collect parts without
/// end.
const PARTS_MAX: usize = 10_000;

/// Longest tag that is parsed.
const TAG_MAX: usize = 4095;

const SPACES: &str = " =";
const QUOTES: &str = " \"'";
const BOTH: &str = " =\"'";

/// A part of a page, and whether it is the target of a refresh.
#[derive(Debug)]
struct Part {
    url: Url,
    is_redirect: bool,
}

impl Part {
    /// If two differ only in case, only one is fetched.
    fn key(&self) -> String {
        self.url.whole.to_ascii_lowercase()
    }
}

/// Parts of pages that are not fetched yet, each once.
#[derive(Debug, Default)]
pub(super) struct Parts {
    list: Vec<Part>,
    keys: HashSet<String>,
    /// Number of parts without room.
    n_left_out: u64,
}

impl Parts {
    /// Adds the parts of a page; returns how many had no room.
    pub(super) fn find(&mut self, page: &str, base: &Url) -> u64 {
        parts(page, base, self);
        std::mem::take(&mut self.n_left_out)
    }

    /// Removes the last one.
    pub(super) fn pop(&mut self) -> Option<Url> {
        let part = self.list.pop()?;
        self.keys.remove(&part.key());
        Some(part.url)
    }

    /// Removes the targets of refreshes; returns the last one that is visited.
    pub(super) fn take_redirect(&mut self) -> Option<Url> {
        let mut last = None;
        let mut at = 0;
        while at < self.list.len() {
            if self.list[at].is_redirect {
                let part = self.list.remove(at);
                self.keys.remove(&part.key());
                last = Some(part.url);
            }
            // As in siege, the entry after a removed one is skipped.
            at += 1;
        }
        last
    }

    /// Adds a part that is not in the list yet.
    fn add(&mut self, url: Url, is_redirect: bool) {
        let part = Part { url, is_redirect };
        if part.url.host.len() < 2 || self.keys.contains(&part.key()) {
            return;
        }
        if self.list.len() == PARTS_MAX {
            self.n_left_out += 1;
            return;
        }
        self.keys.insert(part.key());
        self.list.push(part);
    }
}

fn parts(page: &str, base: &Url, found: &mut Parts) {
    let page = page.split('\0').next().unwrap_or_default().replace('\\', "");
    let mut left = page.as_str();
    while let Some(at) = left.find('<') {
        left = &left[at + 1..];
        if let Some(comment) = left.strip_prefix("!--") {
            left = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            // The character after either is skipped.
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

/// The words of a tag, as strtok_r(3) returns them.
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

    /// Skips words up to one with that prefix; returns whether there is one.
    fn seek(&mut self, with: &str) -> bool {
        while let Some(word) = self.next(SPACES) {
            if begins(word, with) {
                return true;
            }
        }
        false
    }
}

fn tag(text: &str, base: &Url, found: &mut Parts) {
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
                    found.add(base.resolve(source), false);
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
            found.add(base.resolve(source), false);
        }
        word = words.next(SPACES);
    }
}

fn meta(words: &mut Words<'_>, base: &Url, found: &mut Parts) {
    while words.seek("content") {
        while let Some(word) = words.next(SPACES) {
            if word.to_ascii_lowercase().contains("url")
                && let Some(target) = words.next(QUOTES)
            {
                found.add(base.resolve(target), true);
            }
        }
    }
}

/// Returns a word that must be examined again.
fn image<'a>(words: &mut Words<'a>, base: &Url, found: &mut Parts) -> Option<&'a str> {
    let word = words.next(SPACES)?;
    if words.left.starts_with("\"\"") {
        return Some(word);
    }
    if !begins(word, "src") {
        while words.seek("src") {
            let source = words.next(QUOTES);
            if let Some(source) = source.filter(|source| source.len() > 1 && !is_inline(source)) {
                found.add(base.resolve(source), false);
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
        found.add(url, false);
    }
    None
}

fn is_inline(source: &str) -> bool {
    begins(source, "data:image")
}

fn link(words: &mut Words<'_>, base: &Url, found: &mut Parts) {
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
        found.add(base.resolve(target), false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(page: &str) -> Vec<String> {
        let mut found = Parts::default();
        let base = Url::new("http://h.test:81/d/page", true, "");
        found.find(page, &base);
        let shown = |part: &Part| {
            let url = part.url.whole.trim_start_matches("http://h.test:81");
            if part.is_redirect { format!("-> {url}") } else { url.to_owned() }
        };
        found.list.iter().map(shown).collect()
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
    fn parts_are_kept_up_to_a_bound_and_each_once_until_it_is_fetched() {
        let page: String = (0..PARTS_MAX + 5).map(|n| format!("<img src=/{n}>")).collect();
        let base = Url::new("http://h.test/", true, "");
        let mut found = Parts::default();
        assert_eq!(found.find(&page, &base), 5);
        assert_eq!(found.find("<img src=/7>", &base), 0, "it is there");
        assert_eq!(found.list.len(), PARTS_MAX);
        let last = found.pop().unwrap();
        assert_eq!(last.target, format!("/{}", PARTS_MAX - 1));
        found.find(&format!("<img src={0}><IMG SRC={0}>", last.target), &base);
        assert_eq!((found.list.len(), found.keys.len()), (PARTS_MAX, PARTS_MAX));
    }

    #[test]
    fn a_refresh_is_told_apart() {
        let page = "<meta http-equiv=\"refresh\" content=\"0; url=/next\"><img src=/a>";
        assert_eq!(found(page), ["-> /next", "/a"]);
        let mut parts = Parts::default();
        parts.find(page, &Url::new("http://h.test/", true, ""));
        assert_eq!(parts.take_redirect().unwrap().target, "/next");
        assert!(parts.take_redirect().is_none() && parts.keys.len() == 1);
    }
}
