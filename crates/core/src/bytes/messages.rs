//! The binary format of jobs, uploads, memories and states, used on disk, in spool files and on the wire.
//!
//! A safetensors file whose metadata has one entry, `fedtvd`: a JSON header with the kind, the format version and
//! everything that is not a tensor. Equal values have equal bytes. Decoding checks everything that the value's type
//! promises, and never allocates more than the input holds.

use crate::bytes::BytesError;
use crate::bytes::local_header::{self, AdamHeader, LocalHeader};
use crate::bytes::reader::Reader;
use crate::bytes::writer::Writer;
use crate::labels::Reference;
use crate::matching::MatchingStep;
use crate::memory::{Array, Memory};
use crate::model::{Layout, Params};
use crate::round::updates::is_first;
use crate::round::{Branch, ClientId, Job, Offer, Profile, Report, State, Upload};
use crate::rules::Extent;
use crate::stream::Key;
use crate::train::ClassWeights;
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
    local: LocalHeader,
    // Left out if equal: jobs without class weights keep their bytes, and an older client refuses those with weights.
    #[serde(default, skip_serializing_if = "ClassWeights::are_equal")]
    class_weights: ClassWeights,
    // Left out if they change nothing, for the same reasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    adam: Option<AdamHeader>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clip: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label_smoothing: Option<f64>,
    #[serde(default, skip_serializing_if = "is_first")]
    branch: u32,
    /// Number of further models.
    #[serde(default, skip_serializing_if = "is_first")]
    others: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    matching: Option<MatchingStep>,
    // See Layout::widths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    widths: Vec<usize>,
    reference: Reference,
}

impl Job {
    /// Encodes the job: its head, then the values.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.writer().write("job", &self.header())
    }

    /// The head of the job's bytes: the part that differs between clients.
    pub fn head(&self) -> Vec<u8> {
        self.writer().head("job", &self.header())
    }

    /// The values after the head, which are the same for all jobs of an offer.
    pub fn numbers(&self) -> Vec<u8> {
        self.writer().numbers()
    }

    fn writer(&self) -> Writer<'_> {
        let mut writer = vectors(&self.offer.params, &self.offer.carried);
        writer.put_memory("own", &self.offer.own);
        for (place, params) in self.offer.others.iter().enumerate() {
            writer.put(&other(place), &params.values);
        }
        writer
    }

    fn header(&self) -> JobHeader {
        let offer = &self.offer;
        let (local, adam, clip, label_smoothing) = local_header::parts(&offer.local);
        JobHeader {
            client: self.client,
            key: self.key,
            accepted: self.accepted,
            round: offer.round,
            strategy: offer.strategy.clone(),
            local,
            class_weights: offer.class_weights.clone(),
            adam,
            clip,
            label_smoothing,
            branch: offer.branch,
            others: offer.others.len() as u32,
            matching: self.matching.clone(),
            widths: offer.params.layout.widths().to_vec(),
            reference: offer.reference.clone(),
        }
    }

    /// Decodes a job for a model of which tensors of this layout travel; it may have other widths.
    pub fn from_bytes(bytes: &[u8], layout: &Arc<Layout>) -> Result<Self, BytesError> {
        let (header, mut reader) = Reader::open::<JobHeader>("job", bytes)?;
        let layout = &resized(layout, &header.widths)?;
        let parts = (header.local, header.adam, header.clip, header.label_smoothing);
        let offer = Offer {
            round: header.round,
            strategy: header.strategy,
            local: local_header::local(parts).map_err(BytesError::Local)?,
            class_weights: header.class_weights,
            reference: header.reference,
            branch: header.branch,
            params: Arc::new(reader.take_params(layout)?),
            others: (0..header.others as usize)
                .map(|place| reader.take_model(&other(place), layout).map(Arc::new))
                .collect::<Result<_, _>>()?,
            carried: Arc::new(reader.take_carried(layout)?),
            own: Arc::new(reader.take_memory("own")),
        };
        reader.finish()?;
        let JobHeader { client, key, accepted, matching, .. } = header;
        Ok(Self { client, key, accepted, matching, offer: Arc::new(offer) })
    }
}

/// The name of a further model of a job.
fn other(place: usize) -> String {
    format!("other/{place}")
}

/// The layout with these widths; the same if there are none.
fn resized(layout: &Arc<Layout>, widths: &[usize]) -> Result<Arc<Layout>, BytesError> {
    if widths.is_empty() {
        return Ok(Arc::clone(layout));
    }
    layout.with_widths(widths).map(Arc::new).ok_or_else(|| BytesError::Widths(widths.to_vec()))
}

/// A model and its carried vectors.
fn vectors<'a>(params: &'a Params, carried: &'a Memory) -> Writer<'a> {
    let mut writer = Writer::default();
    writer.put("model", &params.values);
    writer.put_memory("carried", carried);
    writer
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UploadHeader {
    pub(crate) client: ClientId,
    pub(crate) report: Report,
}

impl Upload {
    /// Encodes the upload.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = UploadHeader { client: self.client, report: self.report };
        vectors(&self.params, &self.carried).write("upload", &header)
    }

    /// The head of an upload whose vectors have these lengths.
    pub fn head(client: ClientId, report: Report, params: &Params, carried: &Memory) -> Vec<u8> {
        vectors(params, carried).head("upload", &UploadHeader { client, report })
    }

    /// Decodes an upload for a model of this layout. Its values are not checked here: the round validates them.
    pub fn from_bytes(bytes: &[u8], layout: &Arc<Layout>) -> Result<Self, BytesError> {
        let (UploadHeader { client, report }, mut reader) = Reader::open("upload", bytes)?;
        let params = reader.take_params(layout)?;
        let carried = reader.take_carried(layout)?;
        reader.finish()?;
        Ok(Self { client, params, carried, report })
    }
}

impl Memory {
    /// Encodes the memory.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.put_memory("memory", self);
        writer.write("memory", &())
    }

    /// Decodes a memory.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BytesError> {
        let ((), mut reader) = Reader::open("memory", bytes)?;
        let memory = reader.take_memory("memory");
        reader.finish()?;
        Ok(memory)
    }
}

/// The name of a part of a further branch.
fn part_of(place: usize, part: &str) -> String {
    format!("branch/{}/{part}", place + 1)
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateHeader {
    round: u32,
    reference: Reference,
    roster: Vec<Profile>,
    accepted: BTreeMap<ClientId, u32>,
    /// The parents of the further branches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    branches: Vec<Option<u32>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    members: BTreeMap<ClientId, u32>,
    // See Layout::widths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    widths: Vec<usize>,
}

impl State {
    /// Encodes the state.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.put("model", &self.params.values);
        writer.put_memory("own", &self.own);
        writer.put_memory("carried", &self.carried);
        writer.put_memory("weighting", &self.weighting);
        writer.put_memory("combining", &self.combining);
        writer.put_memory("server", &self.server);
        writer.put_memory("screening", &self.screening);
        for (place, branch) in self.branches.iter().enumerate() {
            let name = |part: &str| part_of(place, part);
            writer.put(&name("model"), &branch.params.values);
            writer.put_memory(&name("weighting"), &branch.weighting);
            writer.put_memory(&name("combining"), &branch.combining);
            writer.put_memory(&name("server"), &branch.server);
            if branch.parent.is_some() {
                writer.put(&name("direction"), &branch.direction);
            }
        }
        let header = StateHeader {
            round: self.round,
            reference: self.reference.clone(),
            roster: self.roster.clone(),
            accepted: self.accepted.clone(),
            branches: self.branches.iter().map(|branch| branch.parent).collect(),
            members: self.members.clone(),
            widths: self.params.layout.widths().to_vec(),
        };
        writer.write("state", &header)
    }

    /// Decodes a state for a model of which tensors of this layout travel; it may have other widths.
    pub fn from_bytes(bytes: &[u8], layout: &Arc<Layout>) -> Result<Self, BytesError> {
        let (header, mut reader) = Reader::open::<StateHeader>("state", bytes)?;
        let layout = &resized(layout, &header.widths)?;
        if let Some(pair) = header.roster.windows(2).find(|pair| pair[0].client >= pair[1].client) {
            return Err(BytesError::Roster(pair[1].client));
        }
        let state = Self {
            round: header.round,
            params: Arc::new(reader.take_params(layout)?),
            own: Arc::new(reader.take_memory("own")),
            reference: header.reference,
            roster: header.roster,
            carried: Arc::new(reader.take_carried(layout)?),
            weighting: reader.take_memory("weighting"),
            combining: reader.take_memory("combining"),
            server: reader.take_memory("server"),
            screening: reader.take_memory("screening"),
            branches: (0..)
                .zip(header.branches)
                .map(|(place, parent)| reader.take_branch(place, parent, layout))
                .collect::<Result<_, _>>()?,
            members: header.members,
            accepted: header.accepted,
        };
        reader.finish()?;
        Ok(state)
    }
}

impl Reader<'_> {
    fn take_params(&mut self, layout: &Arc<Layout>) -> Result<Params, BytesError> {
        self.take_model("model", layout)
    }

    fn take_model(&mut self, name: &str, layout: &Arc<Layout>) -> Result<Params, BytesError> {
        let values = self.take_f32(name, layout.len())?;
        Ok(Params { layout: Arc::clone(layout), values })
    }

    /// The further branch at this place of a state.
    fn take_branch(
        &mut self,
        place: usize,
        parent: Option<u32>,
        layout: &Arc<Layout>,
    ) -> Result<Branch, BytesError> {
        let name = |part: &str| part_of(place, part);
        Ok(Branch {
            params: Arc::new(self.take_model(&name("model"), layout)?),
            weighting: self.take_memory(&name("weighting")),
            combining: self.take_memory(&name("combining")),
            server: self.take_memory(&name("server")),
            direction: match parent {
                Some(_) => self.take_f32(&name("direction"), layout.trainable())?,
                None => Vec::new(),
            },
            parent,
        })
    }

    /// Carried vectors are as long as the trainable part or as the buffers; the round checks which.
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
