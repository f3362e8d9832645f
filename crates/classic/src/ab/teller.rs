//! What ab says, when, and on which stream. Owns the order of things; must not know figures or
//! layouts. Start reading at [`Ab`].

use record::{LoadRecord, TlsUse};

use super::figures::{Fatal, Figures};
use super::flags::{Flags, banner};
use super::{files, footnotes, html, plan, text};
use crate::command::{Closing, Finished, OutFile, Progress, Teller, Texts};

/// ab in one run.
pub(super) struct Ab {
    flags: Flags,
    /// Requests that progress has told of.
    told: u64,
}

/// What is known of the server from its first answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) software: String,
    pub(super) protocol: Option<String>,
    pub(super) temporary_key: Option<String>,
    pub(super) tls_name: Option<String>,
}

impl Ab {
    pub(super) fn new(flags: Flags) -> Self {
        Self { flags, told: 0 }
    }

    /// Lines of progress up to so many requests.
    fn completed(&mut self, done: u64) -> String {
        let Some(every) = self.flags.heartbeat() else { return String::new() };
        let mut text = String::new();
        while self.told + every <= done {
            self.told += every;
            text += &format!("Completed {} requests\n", self.told);
        }
        text
    }

    /// ab's last word where it has given up: no report.
    fn gave_up(&mut self, figures: &Figures) -> Option<Closing> {
        let (text, number) = figures.fatal?.said();
        let mut said = self.completed(figures.done);
        if figures.fatal == Some(Fatal::NoPort) {
            said += "\nTest aborted after 10 failures\n\n";
        }
        let mut texts = Texts::err(format!("{said}{text} ({number})\n"));
        if figures.done > 0 {
            texts = texts.and_out(format!("Total of {} requests completed\n", figures.done));
        }
        Some(Closing { texts, code: (number % 256) as u8, ..Closing::default() })
    }

    fn files(&self, figures: &Figures, finished: &Finished<'_>) -> Vec<OutFile> {
        // The tables of -w come without files, as in ab.
        if figures.times.is_empty() || (self.flags.html.is_some() && !finished.record.interrupted) {
            return Vec::new();
        }
        let file = |path: &std::path::PathBuf, text: String, what: &str| OutFile {
            path: path.clone(),
            bytes: text.into_bytes(),
            appends: false,
            complaint: format!("Cannot open {what} output file"),
            code: 1,
        };
        let csv = self.flags.csv.as_ref();
        let gnuplot = self.flags.gnuplot.as_ref();
        let csv = csv.map(|path| file(path, files::csv(&figures.times), "CSV"));
        let gnuplot =
            gnuplot.map(|path| file(path, files::gnuplot(&figures.times, finished), "gnuplot"));
        csv.into_iter().chain(gnuplot).collect()
    }
}

/// What ab prints before its first request.
pub(super) fn opening(flags: &Flags) -> String {
    let mut text = banner(flags.html.is_some());
    if flags.html.is_none() {
        let through = match &flags.proxy {
            Some((host, port)) => format!("[through {host}:{port}] "),
            None => String::new(),
        };
        let end = if flags.heartbeat().is_some() { "\n" } else { "..." };
        text += &format!("Benchmarking {} {through}(be patient){end}", flags.url.host);
    }
    text
}

impl Teller for Ab {
    fn opening(&mut self) -> Texts {
        let mut text = opening(&self.flags);
        if self.flags.verbosity >= 2 {
            let (method, head) = (&self.flags.method, plan::head(&self.flags));
            text += &format!("INFO: {method} header == \n---\n{head}\n---\n");
        }
        Texts::out(text)
    }

    fn progress(&mut self, so_far: &Progress) -> Texts {
        match self.completed(so_far.done.min(self.flags.requests.into())) {
            text if text.is_empty() => Texts::default(),
            text => Texts::err(text),
        }
    }

    fn closing(&mut self, finished: &Finished<'_>) -> Closing {
        let record = finished.record;
        let figures = Figures::new(&self.flags, record);
        let heard = self.heard(record);
        if let Some(mut closing) = self.gave_up(&figures) {
            closing.texts.0.insert(0, (crate::command::Stream::Out, heard));
            return closing;
        }
        let server = Server::new(&self.flags, record);
        let mut texts = Texts::out(heard);
        if !record.interrupted {
            texts = match self.flags.heartbeat() {
                Some(_) => {
                    let completed = self.completed(figures.done);
                    texts.and_err(format!("{completed}Finished {} requests\n", figures.done))
                }
                None => texts.and_out("..done\n"),
            };
        }
        // On SIGINT ab prints its text, also with -w.
        let report = match &self.flags.html {
            Some(html) if !record.interrupted => html::report(&self.flags, html, &server, &figures),
            _ => text::report(&self.flags, &server, &figures),
        };
        Closing {
            texts: texts.and_out(report),
            files: self.files(&figures, finished),
            code: u8::from(record.interrupted),
            footnotes: footnotes::footnotes(&figures, record),
            tally: Some(figures.tally()),
        }
    }
}

impl Ab {
    /// What -v prints of the first reply.
    fn heard(&self, record: &LoadRecord) -> String {
        let Some(head) = record.first_head.as_ref().filter(|_| self.flags.verbosity >= 2) else {
            return String::new();
        };
        let status = head.split(' ').nth(1).unwrap_or("500").get(..3).unwrap_or("500");
        let mut text = format!("LOG: header received:\n{head}\n");
        if !status.starts_with('2') {
            text += &format!("WARNING: Response code not 2xx ({status})\n");
        } else if self.flags.verbosity >= 3 {
            text += &format!("LOG: Response code = {status}\n");
        }
        text
    }
}

impl Server {
    fn new(flags: &Flags, record: &LoadRecord) -> Self {
        let tls = record.tls.as_ref().filter(|tls| flags.url.is_tls && !tls.version.is_empty());
        let is_address = flags.url.host.parse::<std::net::IpAddr>().is_ok();
        let sends_name = flags.url.is_tls && flags.sends_name && !is_address;
        Self {
            software: record.first_head.as_deref().map(software).unwrap_or_default(),
            protocol: tls.map(protocol),
            temporary_key: tls.and_then(|tls| temporary_key(&tls.group)),
            tls_name: sends_name.then(|| flags.url.host.clone()),
        }
    }
}

/// What follows the first "server:" anywhere in the head, up to a space or the line's end.
fn software(head: &str) -> String {
    let lower = head.to_ascii_lowercase();
    let Some(at) = lower.find("server:") else { return String::new() };
    let behind = head.get(at + "server: ".len()..).unwrap_or_default();
    behind.chars().take_while(|c| *c > ' ').collect()
}

/// `TLSv1.3,TLS_AES_256_GCM_SHA384,2048,256`: version, cipher, bits of the certificate's key and of
/// the cipher's.
fn protocol(tls: &TlsUse) -> String {
    let cipher = openssl_cipher(&tls.cipher_suite);
    let cipher_bits = if tls.cipher_suite.contains("AES_128") { 128 } else { 256 };
    let version = tls.version.replace("TLS ", "TLSv");
    format!("{version},{cipher},{},{cipher_bits}", tls.certificate_bits.unwrap_or(0))
}

/// OpenSSL keeps the registered names of TLS 1.3 and has its own for those before.
fn openssl_cipher(registered: &str) -> String {
    let Some((exchange, cipher)) = registered.split_once("_WITH_") else {
        return registered.to_owned();
    };
    let exchange = exchange.trim_start_matches("TLS_");
    // The hash of CHACHA20-POLY1305 goes without saying.
    let cipher = cipher.trim_end_matches("_POLY1305_SHA256");
    let cipher = cipher.replace("AES_", "AES").replace("CHACHA20", "CHACHA20_POLY1305");
    format!("{exchange}_{cipher}").replace('_', "-")
}

/// What OpenSSL calls the key of the exchange; `None` for groups that it has no such line for.
fn temporary_key(group: &str) -> Option<String> {
    let key = match group {
        "X25519" => "X25519 253 bits",
        "secp256r1" => "ECDH prime256v1 256 bits",
        "secp384r1" => "ECDH secp384r1 384 bits",
        "secp521r1" => "ECDH secp521r1 521 bits",
        _ => return None,
    };
    Some(key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ciphers_have_the_names_of_openssl() {
        let names = [
            ("TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
            ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
            ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
            ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ];
        for (registered, own) in names {
            assert_eq!(openssl_cipher(registered), own);
        }
    }

    #[test]
    fn software_ends_at_a_space_and_may_stand_anywhere() {
        assert_eq!(
            software("HTTP/1.1 200 OK\r\nSERVER: Apache/2.4 (Debian)\r\n\r\n"),
            "Apache/2.4"
        );
        assert_eq!(software("HTTP/1.1 200 OK\r\nX-Server: a\r\nServer: b\r\n\r\n"), "a");
        assert_eq!(software("HTTP/1.1 200 OK\r\n\r\n"), "");
        assert_eq!(software("Server:"), "");
    }
}
