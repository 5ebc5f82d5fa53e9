//! The one byte form of job, upload, memory and state: what is stored, spooled and sent.
//!
//! A safetensors file whose metadata holds one entry, `fedtvd`: a JSON header with the kind, the version of
//! this form, and everything that is no tensor. Equal values have equal bytes. Decoding checks everything
//! that the value's type promises, and never allocates more than the bytes hold.

use crate::job::{Job, Offer};
use crate::layout::Layout;
use crate::local::Local;
use crate::memory::{Array, Memory};
use crate::params::Params;
use crate::parcel::Parcel;
pub use crate::parcel::{BytesError, VERSION};
use crate::profile::{ClientId, Profile};
use crate::rules::Extent;
use crate::run::State;
use crate::sealing::Sealing;
use crate::statistic::Reference;
use crate::stream::Key;
use crate::updates::{Report, Upload};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JobHeader {
    client: ClientId,
    key: Key,
    accepted: Option<u32>,
    round: u32,
    strategy: String,
    local: Local,
    reference: Reference,
}

impl Job {
    /// The job's bytes: its head, and then the numbers.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.sealing().seal("job", &self.header())
    }

    /// How the job's bytes begin: what is its own.
    pub fn head(&self) -> Vec<u8> {
        self.sealing().head("job", &self.header())
    }

    /// What follows the head: the numbers that all jobs of an offer share.
    pub fn numbers(&self) -> Vec<u8> {
        self.sealing().numbers()
    }

    fn sealing(&self) -> Sealing<'_> {
        vectors(&self.offer.params, &self.offer.carried)
    }

    fn header(&self) -> JobHeader {
        let offer = &self.offer;
        JobHeader {
            client: self.client,
            key: self.key,
            accepted: self.accepted,
            round: offer.round,
            strategy: offer.strategy.clone(),
            local: offer.local,
            reference: offer.reference.clone(),
        }
    }

    /// A job for a model of this layout.
    pub fn from_bytes(bytes: &[u8], layout: &Arc<Layout>) -> Result<Self, BytesError> {
        let (header, mut parcel) = Parcel::open::<JobHeader>("job", bytes)?;
        let offer = Offer {
            round: header.round,
            strategy: header.strategy,
            local: header.local,
            reference: header.reference,
            params: Arc::new(parcel.take_params(layout)?),
            carried: Arc::new(parcel.take_carried(layout)?),
        };
        parcel.finish()?;
        Ok(Self { client: header.client, key: header.key, accepted: header.accepted, offer: Arc::new(offer) })
    }
}

/// A model and the vectors that travel beside it.
fn vectors<'a>(params: &'a Params, carried: &'a Memory) -> Sealing<'a> {
    let mut sealing = Sealing::default();
    sealing.put("model", &params.values);
    sealing.put_memory("carried", carried);
    sealing
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UploadHeader {
    pub(crate) client: ClientId,
    pub(crate) report: Report,
}

impl Upload {
    /// The upload's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = UploadHeader { client: self.client, report: self.report };
        vectors(&self.params, &self.carried).seal("upload", &header)
    }

    /// How the bytes of an upload begin whose vectors are as long as these.
    pub fn head(client: ClientId, report: Report, params: &Params, carried: &Memory) -> Vec<u8> {
        vectors(params, carried).head("upload", &UploadHeader { client, report })
    }

    /// An upload for a model of this layout. Its numbers may be anything: the round validates them.
    pub fn from_bytes(bytes: &[u8], layout: &Arc<Layout>) -> Result<Self, BytesError> {
        let (UploadHeader { client, report }, mut parcel) = Parcel::open("upload", bytes)?;
        let params = parcel.take_params(layout)?;
        let carried = parcel.take_carried(layout)?;
        parcel.finish()?;
        Ok(Self { client, params, carried, report })
    }
}

impl Memory {
    /// The memory's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut sealing = Sealing::default();
        sealing.put_memory("memory", self);
        sealing.seal("memory", &())
    }

    /// A memory from its bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BytesError> {
        let ((), mut parcel) = Parcel::open("memory", bytes)?;
        let memory = parcel.take_memory("memory");
        parcel.finish()?;
        Ok(memory)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateHeader {
    round: u32,
    reference: Reference,
    roster: Vec<Profile>,
    accepted: BTreeMap<ClientId, u32>,
}

impl State {
    /// The state's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut sealing = Sealing::default();
        sealing.put("model", &self.params.values);
        sealing.put_memory("carried", &self.carried);
        sealing.put_memory("weighting", &self.weighting);
        sealing.put_memory("server", &self.server);
        let header = StateHeader {
            round: self.round,
            reference: self.reference.clone(),
            roster: self.roster.clone(),
            accepted: self.accepted.clone(),
        };
        sealing.seal("state", &header)
    }

    /// A state of a model of this layout.
    pub fn from_bytes(bytes: &[u8], layout: &Arc<Layout>) -> Result<Self, BytesError> {
        let (header, mut parcel) = Parcel::open::<StateHeader>("state", bytes)?;
        if let Some(pair) = header.roster.windows(2).find(|pair| pair[0].client >= pair[1].client) {
            return Err(BytesError::Roster(pair[1].client));
        }
        let state = Self {
            round: header.round,
            params: Arc::new(parcel.take_params(layout)?),
            reference: header.reference,
            roster: header.roster,
            carried: Arc::new(parcel.take_carried(layout)?),
            weighting: parcel.take_memory("weighting"),
            server: parcel.take_memory("server"),
            accepted: header.accepted,
        };
        parcel.finish()?;
        Ok(state)
    }
}

impl Parcel<'_> {
    fn take_params(&mut self, layout: &Arc<Layout>) -> Result<Params, BytesError> {
        let values = self.take_f32("model", layout.len())?;
        Ok(Params { layout: Arc::clone(layout), values })
    }

    /// Carried vectors are as long as the trainable part or as the buffers; which of them, the round checks.
    fn take_carried(&mut self, layout: &Layout) -> Result<Memory, BytesError> {
        let carried = self.take_memory("carried");
        let lengths = [Extent::Trainable, Extent::Buffers].map(|extent| extent.len(layout));
        for (name, array) in carried.arrays() {
            if !matches!(array, Array::F32(values) if lengths.contains(&values.len())) {
                let expected = format!("{} or {} f32 numbers", lengths[0], lengths[1]);
                return Err(BytesError::Tensor { name: format!("carried/{name}"), expected });
            }
        }
        Ok(carried)
    }
}
