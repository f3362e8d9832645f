//! The NATS broker, as a fleet uses it, for callers that block. Owns the connection and the runtime behind it, the names
//! of streams and buckets, and every wait: none is without an end. Start reading at [`Broker::connect`].
//!
//! Nothing relies on a subscription alone: what matters is asked for again, or read back from a stream. Loads never
//! wait for the broker; only the threads that report do.

use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, kv, object_store, stream};
use async_nats::service::ServiceExt as _;
use async_nats::{Client, ConnectOptions, Event, Message};
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt as _;
use tokio::runtime::Runtime;

use crate::ids::Id;

/// Oldest server that this works with: JetStream of earlier ones lacks what the client asks for.
const SERVER_MIN: (i64, i64, i64) = (2, 15, 0);
/// What agents report of a load.
const STREAM: &str = "JOUST_METRICS";
/// Where a run is, and who commands it.
const RUNS: &str = "JOUST_RUNS";
/// Plans, by their SHA-256.
const PLANS: &str = "JOUST_PLANS";
/// The name under which agents answer to discovery.
const SERVICE: &str = "joust-agent";
/// How long a run's messages are kept.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// Messages of one pull.
const PULL: usize = 256;
/// Most notices kept for the user.
const NOTICES_MAX: usize = 100;
/// Time between two tries to connect.
const AGAIN: Duration = Duration::from_millis(500);
/// Longest wait for one answer of the broker.
const ANSWER: Duration = Duration::from_secs(2);
/// Longest wait for one plan or the messages of one run.
const TRANSFER: Duration = Duration::from_secs(60);

/// Where the broker is, and how to be admitted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// `nats://HOST:PORT` or `tls://HOST:PORT`.
    pub url: String,
    /// Certificates of the authorities to trust (PEM).
    pub ca: Option<PathBuf>,
    /// Certificate and key that are shown to the broker (PEM).
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The seed of an NKey.
    pub nkey: Option<String>,
}

/// What the broker could not do.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// There is none, or it does not admit us.
    #[error("cannot connect to the broker at {url}: {why}")]
    Connect {
        /// As given.
        url: String,
        /// A sentence.
        why: String,
    },
    /// It is too old.
    #[error("the broker at {url} is nats-server {version}, and a fleet needs 2.15 or later")]
    Version {
        /// As given.
        url: String,
        /// Its version.
        version: String,
    },
    /// It did not answer as expected.
    #[error("the broker failed to {what}: {why}")]
    Failed {
        /// What was asked of it.
        what: &'static str,
        /// A sentence.
        why: String,
    },
    /// The runtime of the client could not be started.
    #[error("cannot start the threads of the broker's client: {0}")]
    Runtime(#[from] std::io::Error),
}

/// A value in a bucket, with its revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its bytes.
    pub value: Vec<u8>,
    /// What a change must name.
    pub revision: u64,
}

/// An agent that answered to discovery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Its name.
    pub agent: Id,
    /// Version of joust.
    pub version: String,
    /// Version of what it says to controllers.
    pub protocol: u32,
    /// Its CPUs.
    pub cpus: usize,
    /// Its kernel.
    pub kernel: String,
}

/// A subscription, until it is dropped.
#[derive(Debug)]
pub struct Subscription(tokio::task::JoinHandle<()>);

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A connection to a broker.
pub struct Broker {
    runtime: Runtime,
    client: Client,
    jetstream: jetstream::Context,
    notices: Arc<Mutex<Vec<String>>>,
}

impl Broker {
    /// Connects, and tries again as long as `goes_on` says so, which gets the reason of each try that failed; `name` is
    /// shown in the broker's log.
    ///
    /// # Errors
    /// [`BrokerError::Connect`] of the last try, [`BrokerError::Version`] for a server that is too old.
    pub fn connect(
        access: &Access,
        name: &str,
        mut goes_on: impl FnMut(&BrokerError) -> bool,
    ) -> Result<Self, BrokerError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("broker")
            .enable_all()
            .build()?;
        let notices = Arc::new(Mutex::new(Vec::new()));
        let client = loop {
            let tried = runtime.block_on(options(access, name, &notices).connect(&access.url));
            match tried {
                Ok(client) => break client,
                Err(error) => {
                    let why = with_causes(&error);
                    let error = BrokerError::Connect { url: public(&access.url), why };
                    if !goes_on(&error) {
                        return Err(error);
                    }
                    std::thread::sleep(AGAIN);
                }
            }
        };
        let (major, minor, patch) = SERVER_MIN;
        if !client.is_server_compatible(major, minor, patch) {
            let version = client.server_info().version;
            return Err(BrokerError::Version { url: public(&access.url), version });
        }
        let mut jetstream = {
            // It starts a task.
            let _inside = runtime.enter();
            jetstream::new(client.clone())
        };
        jetstream.set_timeout(ANSWER);
        Ok(Self { runtime, client, jetstream, notices })
    }

    /// Makes the stream and the buckets, where they are not there yet.
    ///
    /// # Errors
    /// JetStream is off, or the key that was shown may not do this.
    pub fn make_places(&self) -> Result<(), BrokerError> {
        let stream = stream::Config {
            name: STREAM.to_owned(),
            subjects: vec!["joust.v1.m.>".to_owned()],
            max_age: KEPT,
            max_bytes: 2 << 30,
            discard: stream::DiscardPolicy::Old,
            duplicate_window: Duration::from_secs(600),
            storage: stream::StorageType::File,
            ..stream::Config::default()
        };
        let runs = kv::Config {
            bucket: RUNS.to_owned(),
            history: 16,
            max_age: KEPT,
            ..kv::Config::default()
        };
        let plans = object_store::Config {
            bucket: PLANS.to_owned(),
            max_age: KEPT,
            ..object_store::Config::default()
        };
        self.wait("make its streams (it needs JetStream: nats-server -js)", ANSWER * 5, async {
            self.jetstream.create_or_update_stream(stream).await.map_err(|e| with_causes(&e))?;
            self.jetstream.create_or_update_key_value(runs).await.map_err(|e| with_causes(&e))?;
            match self.jetstream.get_object_store(PLANS).await {
                Ok(_) => Ok(()),
                Err(_) => match self.jetstream.create_object_store(plans).await {
                    Ok(_) => Ok(()),
                    Err(error) => Err(with_causes(&error)),
                },
            }
        })
    }

    /// Sends a message that may be lost; `reply` is where an answer goes.
    ///
    /// # Errors
    /// The queue towards the broker is full.
    pub fn publish(&self, subject: &str, bytes: Vec<u8>) -> Result<(), BrokerError> {
        self.wait("take a message", ANSWER, async {
            let sent = self.client.publish(subject.to_owned(), bytes.into()).await;
            sent.map_err(|error| with_causes(&error))
        })
    }

    /// Sends a question, and waits for its answer.
    ///
    /// # Errors
    /// None came in time, or nobody listens.
    pub fn request(
        &self,
        subject: &str,
        bytes: Vec<u8>,
        timeout: Duration,
    ) -> Result<Vec<u8>, BrokerError> {
        self.wait("bring an answer", timeout, async {
            let answer = self.client.request(subject.to_owned(), bytes.into()).await;
            answer.map(|message| message.payload.to_vec()).map_err(|error| with_causes(&error))
        })
    }

    /// Hands on each message of a subject, with its subject, as long as the returned value lives. What comes while the
    /// receiver's queue is full is dropped: it is sent again, or read back from the stream.
    ///
    /// # Errors
    /// The broker is gone, or the key that was shown may not do this.
    pub fn subscribe<T: Send + 'static>(
        &self,
        subject: &str,
        to: SyncSender<T>,
        read: impl Fn(&str, &[u8]) -> Option<T> + Send + 'static,
    ) -> Result<Subscription, BrokerError> {
        self.each(subject, move |_, message| {
            let read = read(&message.subject, &message.payload);
            read.is_none_or(|message| {
                !matches!(to.try_send(message), Err(TrySendError::Disconnected(_)))
            })
        })
    }

    /// Answers each question of a subject at once, on the client's own thread: for stamps of clocks.
    ///
    /// # Errors
    /// As [`Broker::subscribe`].
    pub fn answer(
        &self,
        subject: &str,
        answer: impl Fn(&[u8]) -> Vec<u8> + Send + 'static,
    ) -> Result<Subscription, BrokerError> {
        self.each(subject, move |client, message| {
            if let Some(reply) = message.reply {
                let client = client.clone();
                let bytes = answer(&message.payload);
                tokio::spawn(async move { client.publish(reply, bytes.into()).await });
            }
            true
        })
    }

    /// Sends a message again and again, on the client's own thread, as long as the returned value lives.
    pub fn repeat(
        &self,
        subject: &str,
        every: Duration,
        message: impl Fn() -> Vec<u8> + Send + 'static,
    ) -> Subscription {
        let (client, subject) = (self.client.clone(), subject.to_owned());
        Subscription(self.runtime.spawn(async move {
            let mut due = tokio::time::interval(every);
            // After a time without CPU one is enough.
            due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                due.tick().await;
                // One that is lost is followed by another.
                let _ = client.publish(subject.clone(), message().into()).await;
            }
        }))
    }

    fn each(
        &self,
        subject: &str,
        mut take: impl FnMut(&Client, Message) -> bool + Send + 'static,
    ) -> Result<Subscription, BrokerError> {
        let client = self.client.clone();
        let mut messages = self.wait("subscribe", ANSWER, async {
            let subscribed = client.subscribe(subject.to_owned()).await;
            // A message that is sent after this is heard.
            client.flush().await.map_err(|error| with_causes(&error))?;
            subscribed.map_err(|error| with_causes(&error))
        })?;
        let task = self.runtime.spawn(async move {
            while let Some(message) = messages.next().await {
                if !take(&client, message) {
                    return;
                }
            }
        });
        Ok(Subscription(task))
    }

    /// Stores a message in the stream, once for each `id`, and waits until the broker has it.
    ///
    /// # Errors
    /// It was not acknowledged: send it again, with the same id.
    pub fn store(&self, subject: &str, id: &str, bytes: Vec<u8>) -> Result<(), BrokerError> {
        self.wait("store a message", ANSWER, async {
            let message = PublishMessage::build().payload(bytes.into()).message_id(id);
            let sent = self.jetstream.send_publish(subject.to_owned(), message).await;
            let stored = sent.map_err(|error| with_causes(&error))?.await;
            stored.map(drop).map_err(|error| with_causes(&error))
        })
    }

    /// All messages that the stream has of a subject, from its first on.
    ///
    /// # Errors
    /// The broker failed half-way: ask again.
    pub fn replay(&self, subject: &str) -> Result<Vec<Vec<u8>>, BrokerError> {
        self.wait("send the messages of a run", TRANSFER, async {
            let text = |error: &dyn std::error::Error| with_causes(error);
            let stream = self.jetstream.get_stream(STREAM).await.map_err(|e| text(&e))?;
            let consumer = pull::Config {
                filter_subject: subject.to_owned(),
                ack_policy: AckPolicy::None,
                deliver_policy: DeliverPolicy::All,
                inactive_threshold: Duration::from_secs(30),
                memory_storage: true,
                ..pull::Config::default()
            };
            let mut consumer = stream.create_consumer(consumer).await.map_err(|e| text(&e))?;
            let (mut all, name) = (Vec::new(), consumer.cached_info().name.clone());
            loop {
                let pulled = consumer.fetch().max_messages(PULL).expires(ANSWER).messages().await;
                let mut pulled = pulled.map_err(|e| text(&e))?;
                let (before, mut left) = (all.len(), 1);
                while let Some(message) = pulled.next().await {
                    let message = message.map_err(|error| error.to_string())?;
                    left = message.info().map_or(0, |info| info.pending);
                    all.push(message.payload.to_vec());
                }
                if left == 0 {
                    break;
                }
                if all.len() == before {
                    // Nothing came: is there nothing, or was something lost on the way?
                    let info = consumer.info().await.map_err(|e| text(&e))?;
                    if info.num_pending == 0 {
                        break;
                    }
                }
            }
            // It would go by itself; many of them in a short time would stay for 30 seconds.
            stream.delete_consumer(&name).await.ok();
            Ok(all)
        })
    }

    /// A value of the bucket of runs.
    ///
    /// # Errors
    /// The broker failed.
    pub fn get(&self, key: &str) -> Result<Option<Stored>, BrokerError> {
        self.wait("read the state of a run", ANSWER, async {
            let runs = self.runs().await?;
            let entry = runs.entry(key).await.map_err(|error| with_causes(&error))?;
            let entry = entry.filter(|entry| entry.operation == kv::Operation::Put);
            Ok(entry.map(|entry| Stored { value: entry.value.to_vec(), revision: entry.revision }))
        })
    }

    /// Changes a value of the bucket of runs if it still has that revision, `None`: if it is not there. Returns the new
    /// revision; `None` if somebody else was faster.
    ///
    /// # Errors
    /// The broker failed; the value may have been changed or not.
    pub fn set(
        &self,
        key: &str,
        value: Vec<u8>,
        revision: Option<u64>,
    ) -> Result<Option<u64>, BrokerError> {
        self.wait("write the state of a run", ANSWER, async {
            let runs = self.runs().await?;
            match revision {
                None => match runs.create(key, value.into()).await {
                    Ok(revision) => Ok(Some(revision)),
                    Err(error) if error.kind() == kv::CreateErrorKind::AlreadyExists => Ok(None),
                    Err(error) => Err(with_causes(&error)),
                },
                Some(revision) => match runs.update(key, value.into(), revision).await {
                    Ok(revision) => Ok(Some(revision)),
                    Err(error) if error.kind() == kv::UpdateErrorKind::WrongLastRevision => {
                        Ok(None)
                    }
                    Err(error) => Err(with_causes(&error)),
                },
            }
        })
    }

    /// The keys of the bucket of runs.
    ///
    /// # Errors
    /// The broker failed.
    pub fn keys(&self) -> Result<Vec<String>, BrokerError> {
        self.wait("list the runs", ANSWER * 5, async {
            let runs = self.runs().await?;
            let mut keys = runs.keys().await.map_err(|error| with_causes(&error))?;
            let mut all = Vec::new();
            while let Some(key) = keys.next().await {
                all.push(key.map_err(|error| with_causes(&error))?);
            }
            Ok(all)
        })
    }

    async fn runs(&self) -> Result<kv::Store, String> {
        self.jetstream.get_key_value(RUNS).await.map_err(|error| with_causes(&error))
    }

    /// Stores a plan under its digest.
    ///
    /// # Errors
    /// The broker failed.
    pub fn put_plan(&self, digest: &str, bytes: &[u8]) -> Result<(), BrokerError> {
        self.wait("store the plan", TRANSFER, async {
            let plans = self.jetstream.get_object_store(PLANS).await;
            let plans = plans.map_err(|error| with_causes(&error))?;
            let mut bytes = bytes;
            plans.put(digest, &mut bytes).await.map(drop).map_err(|error| with_causes(&error))
        })
    }

    /// Deletes a plan.
    ///
    /// # Errors
    /// The broker failed.
    pub fn delete_plan(&self, digest: &str) -> Result<(), BrokerError> {
        self.wait("delete the plan", ANSWER, async {
            let plans = self.jetstream.get_object_store(PLANS).await;
            let plans = plans.map_err(|error| with_causes(&error))?;
            plans.delete(digest).await.map_err(|error| with_causes(&error))
        })
    }

    /// The plan of that digest, unchecked.
    ///
    /// # Errors
    /// It is not there, or larger than `most`, or the broker failed.
    pub fn plan(&self, digest: &str, most: usize) -> Result<Vec<u8>, BrokerError> {
        self.wait("send the plan", TRANSFER, async {
            let plans = self.jetstream.get_object_store(PLANS).await;
            let plans = plans.map_err(|error| with_causes(&error))?;
            let object = plans.get(digest).await.map_err(|error| with_causes(&error))?;
            let mut bytes = Vec::new();
            object
                .take(most as u64 + 1)
                .read_to_end(&mut bytes)
                .await
                .map_err(|e| e.to_string())?;
            if bytes.len() > most {
                return Err(format!("it is larger than {most} bytes"));
            }
            Ok(bytes)
        })
    }

    /// Answers to discovery with this description, as long as the returned value lives.
    ///
    /// # Errors
    /// The broker failed.
    pub fn announce(&self, found: &Found) -> Result<impl Sized + use<>, BrokerError> {
        let said = serde_json::to_string(found).expect("plain data serialises");
        let metadata = [("agent".to_owned(), said)].into();
        self.wait("announce this agent", ANSWER, async {
            let service = self.client.service_builder().description("a load agent of joust");
            // The version of a service has three numbers and no more.
            let version = found.version.split(['-', '+']).next().unwrap_or_default();
            service.metadata(metadata).start(SERVICE, version).await.map_err(|e| e.to_string())
        })
    }

    /// The agents that answer within that time, by name; a name that two have is there twice.
    ///
    /// # Errors
    /// The broker failed.
    pub fn agents(&self, within: Duration) -> Result<Vec<Found>, BrokerError> {
        #[derive(Deserialize)]
        struct Info {
            metadata: std::collections::HashMap<String, String>,
        }
        let (inbox, mut found) = (self.client.new_inbox(), Vec::<Found>::new());
        self.wait("find agents", within + ANSWER, async {
            let mut answers =
                self.client.subscribe(inbox.clone()).await.map_err(|error| with_causes(&error))?;
            let asked = format!("$SRV.INFO.{SERVICE}");
            let sent = self.client.publish_with_reply(asked, inbox, "".into()).await;
            sent.map_err(|error| with_causes(&error))?;
            let until = tokio::time::Instant::now() + within;
            while let Ok(Some(answer)) = tokio::time::timeout_at(until, answers.next()).await {
                let info: Option<Info> = serde_json::from_slice(&answer.payload).ok();
                let said = info.and_then(|info| info.metadata.get("agent").cloned());
                found.extend(said.and_then(|said| serde_json::from_str(&said).ok()));
            }
            Ok(())
        })?;
        found.sort_by(|one, other| one.agent.cmp(&other.agent));
        Ok(found)
    }

    /// What happened to the connection since the last call.
    pub fn notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().expect("nobody panics with it"))
    }

    fn wait<T>(
        &self,
        what: &'static str,
        timeout: Duration,
        work: impl Future<Output = Result<T, String>>,
    ) -> Result<T, BrokerError> {
        let done = self.runtime.block_on(async { tokio::time::timeout(timeout, work).await });
        let done = done.unwrap_or_else(|_| Err(format!("no answer within {timeout:?}")));
        done.map_err(|why| BrokerError::Failed { what, why })
    }
}

/// A URL without the user and the password that it may have.
fn public(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            format!("{scheme}://{host}")
        }
        None => url.to_owned(),
    }
}

fn options(access: &Access, name: &str, notices: &Arc<Mutex<Vec<String>>>) -> ConnectOptions {
    let (notices, was_lost) = (notices.clone(), AtomicBool::new(false));
    let mut options = ConnectOptions::new()
        .name(name)
        .ping_interval(Duration::from_secs(3))
        .request_timeout(Some(ANSWER))
        .connection_timeout(Duration::from_secs(5))
        .custom_inbox_prefix("joust.v1.inbox")
        .event_callback(move |event| {
            // That it is connected is news only after it was not.
            let is_news = match event {
                Event::Connected => was_lost.swap(false, Ordering::Relaxed),
                Event::Disconnected => !was_lost.swap(true, Ordering::Relaxed),
                _ => true,
            };
            if is_news {
                note(&notices, &event);
            }
            async {}
        });
    if let Some(seed) = &access.nkey {
        options = options.nkey(seed.clone());
    }
    if let Some(ca) = &access.ca {
        options = options.add_root_certificates(ca.clone()).require_tls(true);
    }
    if let Some((certificate, key)) = &access.certificate {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    options
}

fn note(notices: &Mutex<Vec<String>>, event: &Event) {
    let line = match event {
        Event::Connected => "connected to the broker again".to_owned(),
        Event::Disconnected => "the connection to the broker is lost; trying again".to_owned(),
        Event::SlowConsumer(_) => "the broker's messages come faster than they are read".to_owned(),
        other => format!("broker: {other}"),
    };
    let mut notices = notices.lock().expect("nobody panics with it");
    if notices.len() < NOTICES_MAX {
        notices.push(line);
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(because) = cause {
        let because_text = because.to_string();
        if !text.contains(&because_text) {
            text = format!("{text}: {because_text}");
        }
        cause = because.source();
    }
    text
}
