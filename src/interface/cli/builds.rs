//! The commands that plan, run, watch and explain builds.

pub(crate) mod codecs;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod gc;
pub(crate) mod job_plan;
pub(crate) mod job_role;
pub(crate) mod job_table;
pub(crate) mod job_watch;
pub(crate) mod logs;
pub(crate) mod merged_logs;
pub(crate) mod method_table;
pub(crate) mod observed_run;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod rank_traffic;
pub(crate) mod report;
pub(crate) mod request;
pub(crate) mod run;
pub(crate) mod slurm_script;
pub(crate) mod stage;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod summary;
pub(crate) mod watch;
