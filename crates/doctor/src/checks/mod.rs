//! Owns the list of checks and what a check is. To add one: a file here, `mod name;` and `&name::ITEM` below;
//! in the file, a planted test that must fire and a clean one that must stay silent. Start reading at
//! [`Check`].

mod accept_queue_overflow;
mod agent_share_bound;
mod agent_share_void;
mod bare_line_feeds;
mod bodies_change_under_load;
mod bursts_of_replies;
mod coarse_clock;
mod cold_page_cache;
mod common_ceiling;
mod concurrency_not_reached;
mod connection_table_full;
mod coordinated_omission;
mod cpu_quota;
mod cut_off_at_the_end;
mod delayed_ack;
mod different_bodies;
mod different_work;
mod disturbed_machine;
mod drift;
mod errors_as_speed;
mod fewer_connections;
mod fewer_slots_than_connections;
mod file_descriptors_exhausted;
mod fixed_delay_dominates;
mod fleet_incomplete;
mod generator_limit;
mod interrupted_load;
mod keep_alive_not_honoured;
mod late_sends;
mod link_ceiling;
mod local_ports_exhausted;
mod log_stalls;
mod loopback_mtu;
mod network_backlog_dropped;
mod no_steady_state;
mod noise_floor;
mod order_effects;
mod packet_loss;
mod process_churn;
mod rate_not_reached;
mod redirects_as_answers;
mod request_retransmitted;
mod seen_otherwise;
mod shared_cpus;
mod silent_at_end;
mod softirq_on_one_cpu;
mod stalls_of_a_fixed_time;
mod stop_the_world_pauses;
mod superlinear_scaling;
mod swapping;
mod synchronised_arrivals;
mod thundering_herd;
mod too_few_samples;
mod truncated_latencies;
pub(crate) mod two_clusters;
mod two_knobs_changed;
mod undeclared_difference;
mod uneven_drift;
mod uneven_workers;
mod unknown_switch;
mod unserved_connections;
mod visits_too_short;
mod warm_up_inside;
mod wrong_reference;

use record::{Finding, Question, Severity};

pub use rate_not_reached::ITEM as RATE_NOT_REACHED;
pub use silent_at_end::ITEM as SILENT_AT_END;

use crate::counters::CounterSource;
use crate::{Evidence, Observation};

/// Every check, by name.
pub const CHECKS: &[&Check] = &[
    &accept_queue_overflow::ITEM,
    &bare_line_feeds::ITEM,
    &bodies_change_under_load::ITEM,
    &bursts_of_replies::ITEM,
    &coarse_clock::ITEM,
    &cold_page_cache::ITEM,
    &common_ceiling::ITEM,
    &concurrency_not_reached::ITEM,
    &connection_table_full::ITEM,
    &coordinated_omission::ITEM,
    &cpu_quota::ITEM,
    &cut_off_at_the_end::ITEM,
    &delayed_ack::ITEM,
    &different_bodies::ITEM,
    &different_work::ITEM,
    &disturbed_machine::ITEM,
    &drift::ITEM,
    &errors_as_speed::ITEM,
    &fewer_connections::ITEM,
    &fewer_slots_than_connections::ITEM,
    &file_descriptors_exhausted::ITEM,
    &fixed_delay_dominates::ITEM,
    &fleet_incomplete::ITEM,
    &agent_share_void::ITEM,
    &agent_share_bound::ITEM,
    &generator_limit::ITEM,
    &interrupted_load::ITEM,
    &keep_alive_not_honoured::ITEM,
    &late_sends::ITEM,
    &link_ceiling::ITEM,
    &local_ports_exhausted::ITEM,
    &log_stalls::ITEM,
    &loopback_mtu::ITEM,
    &network_backlog_dropped::ITEM,
    &no_steady_state::ITEM,
    &noise_floor::ITEM,
    &order_effects::ITEM,
    &packet_loss::ITEM,
    &process_churn::ITEM,
    &rate_not_reached::ITEM,
    &redirects_as_answers::ITEM,
    &request_retransmitted::ITEM,
    &seen_otherwise::ITEM,
    &shared_cpus::ITEM,
    &silent_at_end::ITEM,
    &softirq_on_one_cpu::ITEM,
    &stalls_of_a_fixed_time::ITEM,
    &stop_the_world_pauses::ITEM,
    &superlinear_scaling::ITEM,
    &swapping::ITEM,
    &synchronised_arrivals::ITEM,
    &thundering_herd::ITEM,
    &too_few_samples::ITEM,
    &truncated_latencies::ITEM,
    &two_clusters::ITEM,
    &two_knobs_changed::ITEM,
    &undeclared_difference::ITEM,
    &uneven_drift::ITEM,
    &uneven_workers::ITEM,
    &unknown_switch::ITEM,
    &unserved_connections::ITEM,
    &visits_too_short::ITEM,
    &warm_up_inside::ITEM,
    &wrong_reference::ITEM,
];

/// Those of them that look at all cells of a run at once; they are silent on one cell alone.
pub(crate) const OVER_CELLS: &[&Check] = &[&superlinear_scaling::ITEM];

/// One artifact, and how it is detected. Its texts make the manual, the reports and `docs/artifacts`.
#[derive(Debug)]
pub struct Check {
    /// Name of the artifact, and of the file ("errors_as_speed").
    pub name: &'static str,
    /// What it does to a verdict, once confirmed.
    pub severity: Severity,
    /// The question about a benchmark that it answers.
    pub question: Question,
    /// Whether each finding names contenders that are alike in what was seen and unlike all others, so that a
    /// pair of two of them stands.
    pub spares_like_pairs: bool,
    /// What is wrong, in a few words.
    pub title: &'static str,
    /// Why it misleads, in a sentence.
    pub meaning: &'static str,
    /// How it is detected: pattern, counter and thresholds, in a few sentences.
    pub detection: &'static str,
    /// What to do about it: a command, a flag, a setting.
    pub remedy: &'static str,
    /// How one meets it: a command or setting that shows it, and what is seen.
    pub example: &'static str,
    /// Where more is to be read: a page, a manual, a file of the kernel; several are separated by "; ".
    pub source: &'static str,
    /// Counters that it reads; whoever measures reads these before, during and after each load.
    pub needs: &'static [&'static CounterSource],
    /// Looks for it in what was measured; one entry for each time it is seen, usually for each contender.
    pub look: fn(&Evidence) -> Vec<Observation>,
}

/// Checks of what happens on the generator's machine, whatever the server does. A fleet's agents are examined for these
/// alone, with the counters of their own machines: what the server does is looked for in the sum of all.
pub const ON_THE_GENERATOR: [&str; 9] = [
    "connection_table_full",
    "cpu_quota",
    "file_descriptors_exhausted",
    "generator_limit",
    "late_sends",
    "local_ports_exhausted",
    "network_backlog_dropped",
    "softirq_on_one_cpu",
    "swapping",
];

/// Whether a finding says nothing about a pair of contenders with that log ratio, because its artifact is too small
/// to make such a difference.
pub fn spares(finding: &Finding, ratio_ln: f64) -> bool {
    noise_floor::spares(finding, ratio_ln)
}
