//! Fuzzing of the reply parser: for any bytes in any division it must read the same as the slow reader, reject them for
//! one of its reasons and at its byte, and never use or return a byte that was not fed. Start reading at [`check`].
//!
//! `cargo test` runs the corpus and some thousand random inputs. For a campaign set
//! `PROPTEST_CASES` or `BOLERO_RANDOM_ITERATIONS`, or let a fuzzer look for new paths:
//! `cargo bolero test -p joust-wire --test conformance reply_fuzz::replies_are_read_as_the_oracle_reads_them`.

use std::path::{Path, PathBuf};

use joust_wire::{BodyLimits, ReplyError, ReplyLimits, ReplyParser, RequestKind};
use proptest::prelude::*;

use crate::discarding::trace_with_losses;
use crate::messages::{changed, pieces, reply_limits, sizes, streams, valid_streams};
use crate::replies::{ObservedReply, feed_all, trace};
use crate::reply_oracle::{Reading, read_stream};

/// Replies to pipelined requests, then the end of the stream.
struct Stream<'a> {
    requests: Vec<RequestKind>,
    limits: ReplyLimits,
    bytes: &'a [u8],
}

impl Stream<'_> {
    fn parser(&self) -> ReplyParser {
        let mut parser = ReplyParser::new(self.limits);
        self.requests.iter().for_each(|kind| parser.expect(*kind));
        parser
    }

    /// Position of the rejected byte when they come one by one; the length if the end is rejected.
    fn refused_at(&self) -> Option<usize> {
        let mut parser = self.parser();
        let mut one_by_one = self.bytes.iter();
        let refused =
            |byte: &u8| feed_all(&mut parser, std::slice::from_ref(byte), &mut Vec::new()).is_err();
        let place = one_by_one.position(refused);
        place.or_else(|| parser.eof().is_err().then_some(self.bytes.len()))
    }
}

/// Reads the stream in all ways, and panics if the reader and the oracle differ.
fn check(stream: &Stream<'_>, sizes: &[usize]) -> Reading {
    let expected = read_stream(stream.bytes, &stream.requests, &stream.limits);
    let whole = trace(&mut stream.parser(), [stream.bytes]);
    let text = stream.bytes.escape_ascii();
    assert_eq!(whole.0, expected.seen, "requests {:?}, bytes {text}", stream.requests);
    match (&whole.1, &expected.ending) {
        (Ok(end), Ok(expected)) => assert_eq!(end, expected, "{text}"),
        (Err(reason), Err(refusal)) => {
            assert!(refusal.reasons.contains(reason), "{reason:?}, not {refusal:?}: {text}");
        }
        (end, expected) => panic!("{end:?}, not {expected:?}: {text}"),
    }
    let place = expected.ending.as_ref().err().map(|refusal| refusal.at);
    assert_eq!(stream.refused_at(), place, "place of the byte refused: {text}");
    // Each piece has its own memory, so that no other bytes can have been read.
    let alone: Vec<Box<[u8]>> = pieces(stream.bytes, sizes).into_iter().map(Box::from).collect();
    let divided = trace(&mut stream.parser(), alone.iter().map(|piece| &piece[..]));
    assert_eq!(divided, whole, "in pieces of {sizes:?}: {text}");
    for share in [0.5, 1.0] {
        let lossy = trace_with_losses(&mut stream.parser(), stream.bytes, sizes, share);
        assert_eq!(lossy, whole, "{share} of the body discarded, pieces of {sizes:?}: {text}");
    }
    expected
}

/// Checks an input of the fuzzer. Its first line gives the requests: `H` for HEAD, `C` for CONNECT and anything else
/// for GET; `!` means narrow limits. The rest is what the server sends.
fn check_input(input: &[u8]) -> Reading {
    const NARROW: ReplyLimits = ReplyLimits {
        head_bytes_max: 64,
        interim_max: 1,
        body: BodyLimits { extension_bytes_max: 4, trailer_bytes_max: 8 },
    };
    let end = input.iter().position(|&byte| byte == b'\n').unwrap_or(input.len());
    let line = &input[..end];
    let bytes = input.get(end + 1..).unwrap_or_default();
    let kind = |byte: &u8| match byte {
        b'H' => RequestKind::Head,
        b'C' => RequestKind::Connect,
        _ => RequestKind::Other,
    };
    let requests = line.iter().filter(|&&byte| byte != b'!').map(kind).collect();
    let limits = if line.contains(&b'!') { NARROW } else { ReplyLimits::DEFAULT };
    // Any division is fine, as long as it follows from the input alone.
    let sizes: Vec<usize> = bytes.iter().map(|byte| 1 + usize::from(byte % 23)).collect();
    let sizes = if sizes.is_empty() { vec![1] } else { sizes };
    check(&Stream { requests, limits, bytes }, &sizes)
}

/// Name and content of each file of the corpus, in the order of their names.
fn corpus() -> Vec<(String, Vec<u8>)> {
    let dir =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/__fuzz__/replies/corpus");
    let entries = std::fs::read_dir(&dir).expect("the corpus is a folder");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("an entry of the corpus").path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let read = |path: &PathBuf| std::fs::read(path).expect("a file of the corpus is readable");
    paths.iter().map(|path| (name(path), read(path))).collect()
}

#[test]
fn every_file_of_the_corpus_is_what_its_name_says() {
    let corpus = corpus();
    assert!(corpus.len() >= 40, "the corpus is found: {} files", corpus.len());
    for (name, input) in corpus {
        let Reading { seen, ending } = check_input(&input);
        let n_done = seen.iter().filter(|seen| matches!(seen, ObservedReply::Done(_))).count();
        let n_requests = input.iter().take_while(|&&b| b != b'\n').filter(|&&b| b != b'!').count();
        let was_cut =
            |reason: &ReplyError| matches!(reason, ReplyError::CutInHead | ReplyError::CutInBody);
        let matches = match (name.split('-').next(), &ending) {
            (Some("read"), Ok(_)) => n_done == n_requests,
            (Some("cut"), Err(refusal)) => refusal.reasons.iter().all(was_cut),
            (Some("refused"), Err(refusal)) => !refusal.reasons.iter().any(was_cut),
            _ => false,
        };
        assert!(matches, "{name}: {n_done} of {n_requests} replies, {ending:?}");
    }
}

#[test]
fn replies_are_read_as_the_oracle_reads_them() {
    bolero::check!(name = "replies").with_iterations(4000).for_each(|input: &[u8]| {
        check_input(input);
    });
}

/// One file of the corpus with a few changed bytes, and its rest replaced by that of another file.
#[test]
fn changed_files_of_the_corpus_are_read_as_the_oracle_reads_them() {
    let corpus = corpus();
    let pick = |number: u16| &corpus[usize::from(number) % corpus.len()].1;
    let share = |number: u16| f64::from(number) / (f64::from(u16::MAX) + 1.0);
    bolero::check!(name = "changed-replies")
        .with_type::<((u16, u16), Option<(u16, u16)>, [(u16, u8, u8); 3])>()
        .with_iterations(8000)
        .for_each(|((first, seam), second, changes)| {
            let first = pick(*first);
            let mut input = first.clone();
            if let Some((second, other_seam)) = second {
                let second = pick(*second);
                input.truncate((share(*seam) * first.len() as f64) as usize);
                input.extend(&second[(share(*other_seam) * second.len() as f64) as usize..]);
            }
            let made = changes.iter().filter(|(_, what, _)| *what < 200);
            let changes: Vec<(f64, u8, u8)> =
                made.map(|&(at, what, byte)| (share(at), what % 3, byte)).collect();
            check_input(&changed(&input, &changes));
        });
}

/// Whether all requests were answered, up to the last byte.
fn is_clean(Reading { seen, ending }: &Reading, n_requests: usize) -> bool {
    let n_done = seen.iter().filter(|seen| matches!(seen, ObservedReply::Done(_))).count();
    ending.is_ok() && n_done == n_requests
}

/// Several times proptest's default, because a case takes some 20 us; or the requested number, if larger.
fn cases() -> u32 {
    ProptestConfig::default().cases.max(2048)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn valid_replies_are_read_to_the_last(
        (requests, bytes) in valid_streams(),
        sizes in sizes(),
    ) {
        let n_requests = requests.len();
        let stream = Stream { requests, limits: ReplyLimits::DEFAULT, bytes: &bytes };
        prop_assert!(is_clean(&check(&stream, &sizes), n_requests), "{}", bytes.escape_ascii());
    }

    #[test]
    fn any_replies_are_read_or_refused_as_the_oracle_does(
        (requests, bytes) in streams(),
        limits in reply_limits(),
        sizes in sizes(),
    ) {
        check(&Stream { requests, limits, bytes: &bytes }, &sizes);
    }

    #[test]
    fn arbitrary_bytes_are_refused_where_the_oracle_does(
        start in prop::sample::select(vec![
            "", "HTTP/1.1 ", "HTTP/1.1 200 OK\r\nA: ",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        ]),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        sizes in sizes(),
    ) {
        let bytes = [start.as_bytes(), &bytes].concat();
        let requests = vec![RequestKind::Other; 2];
        check(&Stream { requests, limits: ReplyLimits::DEFAULT, bytes: &bytes }, &sizes);
    }
}
