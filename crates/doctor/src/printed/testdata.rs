//! Texts for the tests of checks: sound ones, and ways to plant a fault in them.

use super::check::Seen;
use super::row::{Printed, Source};

/// What is read of one text.
pub(crate) fn printed(text: &str) -> Printed {
    of(&[("paste", text)])
}

/// What is read of several named texts.
pub(crate) fn of(texts: &[(&str, &str)]) -> Printed {
    let source =
        |(name, text): &(&str, &str)| Source { name: (*name).to_owned(), text: (*text).to_owned() };
    super::reading::read(texts.iter().map(source).collect()).expect("the test's text is readable")
}

/// The evidence of each.
pub(crate) fn evidence(seen: &[Seen]) -> Vec<&str> {
    seen.iter().map(|seen| seen.evidence.as_str()).collect()
}

/// A report of ab over 20 s at 64 connections, in which everything agrees.
pub(crate) const AB: &str = "\
This is ApacheBench, Version 2.3 <$Revision: 1903618 $>
Server Software:        nginx
Server Hostname:        127.0.0.1
Server Port:            8080

Document Path:          /index.html
Document Length:        3361 bytes

Concurrency Level:      64
Time taken for tests:   20.000 seconds
Complete requests:      200000
Failed requests:        0
Total transferred:      719600000 bytes
HTML transferred:       672200000 bytes
Requests per second:    10000.00 [#/sec] (mean)
Time per request:       6.400 [ms] (mean)
Time per request:       0.100 [ms] (mean, across all concurrent requests)
Transfer rate:          35136.72 [Kbytes/sec] received

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        0    1   0.6      1       9
Processing:     1    5   1.9      5      29
Waiting:        0    4   1.8      4      28
Total:          1    6   2.1      6      33

Percentage of the requests served within a certain time (ms)
  50%      6
  66%      7
  75%      7
  80%      8
  90%      9
  95%     10
  98%     12
  99%     14
 100%     33 (longest request)
";

/// A report of wrk over 10 s at 64 connections, in which everything agrees.
pub(crate) const WRK: &str = "\
Running 10s test @ http://127.0.0.1:8080/index.html
  2 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.28ms    0.31ms   2.41ms   80.00%
    Req/Sec    25.00k     1.00k   27.00k    70.00%
  Latency Distribution
     50%    1.21ms
     75%    1.40ms
     90%    1.72ms
     99%    2.20ms
  500000 requests in 10.00s, 1.68GB read
Requests/sec:  50000.00
Transfer/sec:    172.03MB
";

/// The text with one passage replaced by another; it must be there.
pub(crate) fn with(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "the test replaces what is there: {old}");
    text.replace(old, new)
}
