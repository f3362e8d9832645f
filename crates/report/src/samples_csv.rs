//! Single requests, one row each, for R or a script: those that a load kept, each k-th of all. A run has those of all
//! visits, warm-up included. Columns are those of `sheets`. Start reading at [`OUTPUT`].

use crate::sheets::{samples_of_load, samples_of_run};
use crate::{Options, Output, Render, Written};

/// Every request that was kept, one row each.
pub(crate) static OUTPUT: Output = Output {
    name: "samples-csv",
    extension: "samples.csv",
    about: "single requests with all their instants, one row each",
    written: Written::OnRequest,
    run: Some(Render::Text(|record, _: &Options| samples_of_run(record).csv())),
    load: Some(Render::Text(|record, _: &Options| samples_of_load(record).csv())),
};
