//! Owns the check that contenders send replies of the same size and shape. Start reading at [`look`].
//!
//! Two servers that send the same body may still do different work: one sends 200 bytes more of head, one frames its
//! body in chunks, one makes an ETag or a cookie. Where replies are small that is a part of what is compared.
//! Another body is worse, and has a check of its own (`different_bodies`).

use std::collections::BTreeMap;

use record::{Certainty, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "different_work",
    severity: Severity::Note,
    question: Question::DoesItMatter,
    spares_like_pairs: false,
    title: "contenders sent replies of different size or shape",
    meaning: "part of the difference in speed may be the work that only some of them do",
    remedy: "make them alike: compression off, the same framing, no ETag and no cookie (etag off, FileETag None), \
             or say so beside the result",
    detection: "Bytes of a reply under load, medians over visits, that differ by more than 2 %, or heads before \
                the load that differ in version, Content-Encoding, framing, Date, ETag or Set-Cookie",
    example: "nginx with `gzip on` beside a server without compression",
    source: "RFC 9110, section 8; RFC 9112, sections 6 and 7",
    needs: &[],
    look,
};

/// Difference of the bytes of a reply that is of no interest.
const BYTES_DIFFER_MIN: f64 = 0.02;

fn look(evidence: &Evidence) -> Vec<Observation> {
    let contenders: Vec<usize> = evidence
        .contenders()
        .filter(|&one| !evidence.run.contenders[one].head.is_empty())
        .collect();
    let work = |contender| evidence.run.plan.target(0, contender);
    if contenders.len() < 2 || contenders.iter().any(|&one| work(one) != work(contenders[0])) {
        return Vec::new();
    }
    bytes(evidence, &contenders).into_iter().chain(shapes(evidence, &contenders)).collect()
}

/// Who sends most beside who sends least.
fn bytes(evidence: &Evidence, contenders: &[usize]) -> Option<Observation> {
    let each = contenders.iter().filter_map(|&one| Some((one, bytes_of_reply(evidence, one)?)));
    let mut each: Vec<(usize, f64)> = each.collect();
    each.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (&(_, most), &(_, least)) = (each.first()?, each.last()?);
    let more = most / least - 1.0;
    if more <= BYTES_DIFFER_MIN {
        return None;
    }
    let said: Vec<String> = each
        .iter()
        .map(|&(one, bytes)| {
            format!(
                "{}: {} bytes a reply",
                evidence.name(one),
                words::grouped(bytes.round() as u64)
            )
        })
        .collect();
    Some(Observation {
        share: Some(more.min(1.0)),
        certainty: Certainty::Confirmed,
        contenders: each.iter().map(|(one, _)| *one).collect(),
        evidence: format!("{}; {} more at most", said.join(", "), words::percent(more)),
    })
}

/// Bytes of a reply under load; `None` where not all were good.
fn bytes_of_reply(evidence: &Evidence, contender: usize) -> Option<f64> {
    let good = evidence.loads(contender).map(|(_, load)| load).filter(|load| {
        load.requests.ok > 0 && load.requests.failed + load.requests.unanswered == 0
    });
    let bytes: Vec<f64> =
        good.map(|load| load.bytes.read as f64 / load.requests.done as f64).collect();
    stats::median(&bytes)
}

/// What heads say of the work behind them, where they do not say the same.
fn shapes(evidence: &Evidence, contenders: &[usize]) -> Option<Observation> {
    let heads: Vec<BTreeMap<&str, String>> =
        contenders.iter().map(|&one| shape(&evidence.run.contenders[one].head)).collect();
    let differing: Vec<&&str> = heads[0]
        .keys()
        .filter(|part| heads.iter().any(|other| other[**part] != heads[0][**part]))
        .collect();
    if differing.is_empty() {
        return None;
    }
    let said: Vec<String> = contenders
        .iter()
        .zip(&heads)
        .map(|(&one, head)| {
            let parts: Vec<&str> = differing.iter().map(|part| head[**part].as_str()).collect();
            format!("{}: {}", evidence.name(one), words::list(&parts))
        })
        .collect();
    Some(Observation {
        share: None,
        certainty: Certainty::Confirmed,
        contenders: contenders.to_vec(),
        evidence: said.join("; "),
    })
}

/// The parts of a head that cost work, each in words.
fn shape(head: &str) -> BTreeMap<&'static str, String> {
    let mut lines = head.lines();
    let version = lines.next().unwrap_or_default().split(' ').next().unwrap_or_default().to_owned();
    let fields: BTreeMap<String, &str> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim()))
        .collect();
    let has = |name: &str, word: &str| match fields.contains_key(name) {
        true => word.to_owned(),
        false => format!("no {word}"),
    };
    let coding = match fields.get("content-encoding") {
        Some(coding) => format!("in {coding}"),
        None => "not encoded".to_owned(),
    };
    let is_chunked = fields
        .get("transfer-encoding")
        .is_some_and(|codings| codings.to_ascii_lowercase().contains("chunked"));
    let framing = match (is_chunked, fields.contains_key("content-length")) {
        (true, _) => "in chunks",
        (false, true) => "with its length",
        (false, false) => "up to the end of the connection",
    };
    BTreeMap::from([
        ("1 version", version),
        ("2 coding", coding),
        ("3 framing", framing.to_owned()),
        ("4 date", has("date", "Date")),
        ("5 etag", has("etag", "ETag")),
        ("6 cookie", has("set-cookie", "Set-Cookie")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    const HEAD: &str =
        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 3361\r\n\r\n";

    /// a with that head and b with this one, whose replies are a given number of bytes longer.
    fn seen(head: &str, longer: u64) -> Vec<Observation> {
        let mut run = testdata::run(&["a", "b"], 4);
        run.contenders[0].head = HEAD.to_owned();
        run.contenders[1].head = head.to_owned();
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let load = visit.load.as_mut().unwrap();
            load.bytes.read += longer * load.requests.done;
        }
        look(&Evidence::of(&run))
    }

    #[test]
    fn replies_of_one_size_and_shape_are_silent() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 4))), []);
        let later = HEAD.replace("06 Nov", "07 Nov").replace("Date", "date");
        assert_eq!(seen(&later, 60), []);
    }

    #[test]
    fn longer_replies_are_told_by_how_much_longer_they_are() {
        let (full, half) = (seen(HEAD, 350), seen(HEAD, 175));
        assert_eq!(
            full[0].evidence,
            "b: 3,850 bytes a reply, a: 3,500 bytes a reply; 10 % more at most"
        );
        assert_eq!(
            (full[0].share, half[0].share),
            (Some(3850.0 / 3500.0 - 1.0), Some(3675.0 / 3500.0 - 1.0))
        );
    }

    #[test]
    fn heads_that_stand_for_other_work_are_told() {
        let head =
            "HTTP/1.1 200 OK\r\nDate: x\r\nETag: \"1\"\r\nTransfer-Encoding: chunked\r\n\r\n";
        let text = "a: with its length and no ETag; b: in chunks and ETag";
        assert_eq!(seen(head, 0)[0].evidence, text);
        let gzip = HEAD.replace("Date", "Content-Encoding: gzip\r\nDate");
        assert_eq!(seen(&gzip, 0)[0].evidence, "a: not encoded; b: in gzip");
    }

    #[test]
    fn contenders_that_are_asked_for_different_things_are_not_compared() {
        let mut run = testdata::run(&["a", "b"], 4);
        run.contenders[0].head = HEAD.to_owned();
        run.contenders[1].head = "HTTP/1.0 200 OK\r\n\r\n".to_owned();
        assert_eq!(look(&Evidence::of(&run)).len(), 1);
        run.plan.contenders[1].work.target = Some("/other".to_owned());
        assert_eq!(look(&Evidence::of(&run)), []);
    }
}
