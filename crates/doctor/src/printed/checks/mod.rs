//! Owns the list of checks of printed results. To add one: a file here, `mod name;` and `&name::ITEM` below; in the
//! file, a planted text that must fire and sound ones that must stay silent. Start reading at [`CHECKS`].

mod bandwidth_ceiling;
mod best_of_several;
mod close_neighbours;
mod copied_figures;
mod documents_sent;
mod errors_beside_rate;
mod errors_in_rate;
mod figures_disagree;
mod fixed_delay;
mod idle_server;
mod impossible_order;
mod inverted_failures;
mod keep_alive_ended;
mod littles_law;
mod load_too_short;
mod nothing_but_errors;
mod percentile_is_mean;
mod report_cut_off;
mod runs_in_two_clusters;
mod samples_for_percentile;
mod stalled_phase;
mod superlinear;
mod tail_cut_by_timeout;
mod timer_stalls;
mod unlike_servers_alike;

use super::check::PrintedCheck;

/// Every check, by name.
pub const CHECKS: &[&PrintedCheck] = &[
    &bandwidth_ceiling::ITEM,
    &best_of_several::ITEM,
    &close_neighbours::ITEM,
    &copied_figures::ITEM,
    &documents_sent::ITEM,
    &errors_beside_rate::ITEM,
    &errors_in_rate::ITEM,
    &figures_disagree::ITEM,
    &fixed_delay::ITEM,
    &idle_server::ITEM,
    &impossible_order::ITEM,
    &inverted_failures::ITEM,
    &keep_alive_ended::ITEM,
    &littles_law::ITEM,
    &load_too_short::ITEM,
    &nothing_but_errors::ITEM,
    &percentile_is_mean::ITEM,
    &report_cut_off::ITEM,
    &runs_in_two_clusters::ITEM,
    &samples_for_percentile::ITEM,
    &stalled_phase::ITEM,
    &superlinear::ITEM,
    &tail_cut_by_timeout::ITEM,
    &timer_stalls::ITEM,
    &unlike_servers_alike::ITEM,
];
