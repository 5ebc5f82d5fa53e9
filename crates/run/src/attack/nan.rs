//! One value of the model is NaN. The server refuses the update, so the client counts as failed.
//!
//! ```text
//! w_k[0] <- NaN
//! ```

use crate::attack::Spec;

pub(super) const SPEC: Spec = Spec {
    update: Some(|upload, _| {
        if let Some(value) = upload.params.values.first_mut() {
            *value = f32::NAN;
        }
    }),
    ..Spec::new("nan", "one value of its model is NaN, so that the server refuses the update")
};
