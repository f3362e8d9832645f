//! The cookies of one connection slot, which stands for one user. Owns the parts of Set-Cookie that a load needs:
//! name, value and removal. Paths and domains are ignored, because a load has the URLs it was given. Start reading at
//! [`Jar::take`].

/// Most cookies kept, and most bytes of the field: what RFC 6265, 6.1 asks browsers for a domain.
const COOKIES_MAX: usize = 50;
const BYTES_MAX: usize = 4096;

/// Cookies, in the order in which they were set first.
#[derive(Default)]
pub(crate) struct Jar {
    cookies: Vec<(Vec<u8>, Vec<u8>)>,
    /// The value of a Cookie field.
    rendered: Vec<u8>,
}

impl Jar {
    /// Takes a Set-Cookie field. A cookie that does not fit is left out.
    pub(crate) fn take(&mut self, field: &[u8]) {
        let mut parts = field.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let pair = parts.next().unwrap_or_default();
        let Some(equals) = pair.iter().position(|&byte| byte == b'=') else { return };
        let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        let has_expired = parts.any(|part| {
            let age = part.to_ascii_lowercase();
            age.strip_prefix(b"max-age=").is_some_and(|age| age == b"0" || age.starts_with(b"-"))
        });
        let at = self.cookies.iter().position(|(kept, _)| kept == name);
        match (at, has_expired) {
            (Some(at), true) => drop(self.cookies.remove(at)),
            (Some(at), false) => self.cookies[at].1 = value.to_vec(),
            (None, false) if self.has_room(name, value) && !name.is_empty() => {
                self.cookies.push((name.to_vec(), value.to_vec()));
            }
            (None, _) => {}
        }
        self.render();
    }

    /// The value of the Cookie field, if there is any.
    pub(crate) fn value(&self) -> Option<&[u8]> {
        (!self.rendered.is_empty()).then_some(&*self.rendered)
    }

    fn has_room(&self, name: &[u8], value: &[u8]) -> bool {
        self.cookies.len() < COOKIES_MAX
            && self.rendered.len() + name.len() + value.len() + 3 <= BYTES_MAX
    }

    fn render(&mut self) {
        self.rendered.clear();
        for (name, value) in &self.cookies {
            if !self.rendered.is_empty() {
                self.rendered.extend_from_slice(b"; ");
            }
            self.rendered.extend_from_slice(name);
            self.rendered.push(b'=');
            self.rendered.extend_from_slice(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(fields: &[&str]) -> String {
        let mut jar = Jar::default();
        fields.iter().for_each(|field| jar.take(field.as_bytes()));
        String::from_utf8(jar.value().unwrap_or_default().to_vec()).unwrap()
    }

    #[test]
    fn cookies_are_set_changed_and_removed() {
        assert_eq!(after(&["a=1; Path=/; HttpOnly", "b = 2"]), "a=1; b=2");
        assert_eq!(after(&["a=1", "b=2", "a=3"]), "a=3; b=2");
        assert_eq!(after(&["a=1", "b=2", "a=; Max-Age=0"]), "b=2");
        assert_eq!(after(&["nonsense", "=x", ""]), "");
    }

    #[test]
    fn a_server_that_sets_cookies_for_ever_fills_no_memory() {
        let mut jar = Jar::default();
        for n in 0..10_000 {
            jar.take(format!("cookie{n}={}", "x".repeat(100)).as_bytes());
        }
        assert!(jar.value().is_some_and(|value| value.len() <= BYTES_MAX));
    }
}
