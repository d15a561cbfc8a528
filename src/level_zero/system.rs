//! What the kernel says: PCI bridges and device nodes.

use super::Reported;
use serde::Serialize;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// A PCI bridge and its link: the one above it for the upper end of a switch, else the one below it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bridge {
    pub pci_address: String,
    /// Gigatransfers a second and lane.
    pub current_gt_per_s: Reported<f64>,
    pub current_lanes: Reported<u32>,
    pub max_gt_per_s: Reported<f64>,
    pub max_lanes: Reported<u32>,
}

/// A device node through which programs use a GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RenderNode {
    pub path: String,
    /// Why it cannot be opened, if so.
    pub problem: Option<String>,
}

/// The bridges above a PCI device, nearest first; the last is the root port.
pub(super) fn bridges(root: &Path, address: &str) -> Result<Vec<Bridge>, String> {
    let link = root.join("sys/bus/pci/devices").join(address);
    // The real path has a folder for each bridge on the way.
    let device = link.canonicalize().map_err(|error| format!("{}: {error}", link.display()))?;
    let name = |folder: &Path| folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let above = device.ancestors().skip(1).map_while(|folder| {
        let pci_address = name(folder).filter(|name| name.split(':').count() == 3)?;
        Some(Bridge {
            pci_address,
            current_gt_per_s: speed(folder, "current_link_speed").into(),
            current_lanes: lanes(folder, "current_link_width").into(),
            max_gt_per_s: speed(folder, "max_link_speed").into(),
            max_lanes: lanes(folder, "max_link_width").into(),
        })
    });
    Ok(above.collect())
}

fn attribute(folder: &Path, name: &str) -> Result<String, String> {
    let text = fs::read_to_string(folder.join(name)).map_err(|error| format!("{name}: {error}"))?;
    Ok(text.trim().to_owned())
}

/// A text such as `32.0 GT/s PCIe`.
fn speed(folder: &Path, name: &str) -> Result<f64, String> {
    let text = attribute(folder, name)?;
    let number = text.split_once(" GT/s").and_then(|(number, _)| number.parse().ok()).filter(|n: &f64| n.is_finite());
    number.ok_or_else(|| format!("{name}: expected a number of GT/s, got `{text}`"))
}

fn lanes(folder: &Path, name: &str) -> Result<u32, String> {
    let text = attribute(folder, name)?;
    text.parse().map_err(|_| format!("{name}: expected a number of lanes, got `{text}`"))
}

/// The render nodes, sorted, each opened for a moment to see whether it can be.
pub(super) fn render_nodes(root: &Path) -> Result<Vec<RenderNode>, String> {
    let folder = root.join("dev/dri");
    let failed = |error: io::Error| {
        let hint = "; no kernel driver offers a GPU, or this container was not given it";
        format!("{}: {error}{}", folder.display(), if error.kind() == ErrorKind::NotFound { hint } else { "" })
    };
    let mut nodes = Vec::new();
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_string_lossy().starts_with("renderD") {
            let opened = fs::File::options().read(true).write(true).open(entry.path());
            let problem = opened.err().map(|error| match error.kind() {
                ErrorKind::PermissionDenied => format!("{error}; users of the GPU have to be in the group `render`"),
                _ => error.to_string(),
            });
            nodes.push(RenderNode { path: entry.path().display().to_string(), problem });
        }
    }
    nodes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(nodes)
}
