/**
 * The documents that the canvas draws and plays; the same JSON as in Python (`widgets/view_model/scene.py`).
 *
 * @typedef {"gpu" | "switch" | "memory" | "nic"} Kind
 *
 * @typedef {object} Device
 * @property {string} name unique, the identifier
 * @property {Kind} kind
 * @property {string | null} host
 * @property {boolean} stores
 * @property {boolean} copies
 * @property {boolean} reduces
 * @property {number | null} buffer_bytes null means no limit
 *
 * @typedef {object} Link one way
 * @property {string} src
 * @property {string} dst
 * @property {number} bandwidth GB/s of all `count` parallel links together
 * @property {number} alpha µs
 * @property {string} medium
 * @property {number} count
 *
 * @typedef {object} Limit a cap on the sum of what its links carry
 * @property {string} name
 * @property {[string, string][]} links
 * @property {number} bandwidth GB/s
 *
 * @typedef {{name: string, devices: Device[], links: Link[], limits: Limit[]}} Topology
 * @typedef {{kind: "note" | "frame", text: string, x: number, y: number, width: number, height: number}} Annotation
 *   what is written beside the cluster: its middle, and the size of a frame
 * @typedef {object} Drawing
 * @property {Topology} topology
 * @property {Record<string, [number, number]>} positions
 * @property {Annotation[]} [annotations]
 * @property {string} [document] which of the documents of the host it is a step of
 *
 * @typedef {object} Line what is drawn between two devices: one link or a pair of opposite ones
 * @property {string} id
 * @property {string} a
 * @property {string} b
 * @property {Link} forth from a to b
 * @property {Link | null} back from b to a
 * @property {Line[]} [parts] those of a bundle between two boxes, whose bandwidths are added up
 *
 * @typedef {object} Group devices that are folded into one box
 * @property {string} key stands for it among the names of devices
 * @property {string} title
 * @property {string | null} host none of alike switches and of pods
 * @property {boolean} [pod] whether it is a rack or a pod
 * @property {Device[]} members
 *
 * @typedef {object} Shown what is on the screen
 * @property {Device[]} devices those that are not folded
 * @property {Group[]} groups the folded ones
 * @property {Line[]} lines
 * @property {Map<string, {line: Line, forth: boolean}>} lanes where each link of the drawing runs
 * @property {Record<string, [number, number]>} positions of devices and of groups by key
 * @property {Map<string, string>} home key of the group of each device that is folded
 * @property {Map<string, Group>} byKey
 * @property {{title: string, ends: string[]}[]} pods racks and pods that are open, with what is shown of each
 * @property {(p: Point) => Point} toDrawing a point of the screen among the positions of the drawing
 * @property {(p: Point) => Point} fromDrawing the other way about
 * @property {(from: Point, to: Point) => [number, number]} wayOf how far in the drawing what is dragged from one point to another moves
 *
 * @typedef {[number, string, string, number, number, number]} Transfer
 *   chunk, src, dst, start µs, end µs (latency included), fraction of the chunk
 *
 * @typedef {object} Scene
 * @property {Topology} topology the one it was solved for
 * @property {{origin: number, label: string, size: number, reduced?: boolean}[]} chunks
 * @property {Record<string, number[]>} holds device -> chunks it has at the start
 * @property {Transfer[]} transfers sorted by start
 * @property {number} makespan µs
 * @property {number} epoch_duration µs of one step of the player
 * @property {number} epochs
 * @property {number} [every] chunks that there are, where only some are shown
 * @property {string[]} sentences what happens in each epoch, a line per sentence
 * @property {{start: number, caption: string}[]} [steps] rounds of sends, and the µs at which each begins
 * @property {{start: number, label: string}[]} [phases] reduce-scatter and all-gather, where they can be told apart
 * @property {string} title
 * @property {{ranks: number[], label: string}[]} [terms] sets of ranks whose contributions to a sum are sent
 * @property {number[]} [carried] which of these each transfer carries, or -1; none where no send names them
 * @property {Details | null} [details] why each transfer started when it did
 * @property {string[]} [tones] colours of the theme of its chunks, which then are no data that a buffer holds
 * @property {{series: string, number: number}} [take] which solve it is of, and its which schedule
 *
 * @typedef {object} Details parallel to the transfers, as `ccl.timeline` finds them
 * @property {[number, number, number, number, number][]} rows index of the reason, transfer that let it
 *   start or -1, µs at which what it carries was there, planned epoch or -1, µs at which its link is free
 * @property {string[]} reasons
 * @property {Record<string, string>} phrases sentences with `{holes}`
 * @property {number[]} critical transfers of the critical path, in its order
 *
 * @typedef {object} Cut
 * @property {string[]} inside names of devices
 * @property {[string, string][]} links that leave it
 * @property {number} bandwidth GB/s
 * @property {number} makespan µs, what it proves
 * @property {string} label
 *
 * @typedef {object} Marks what is drawn over the cluster
 * @property {string} [title] of the legend
 * @property {{
 *   tone: {class?: number, heat?: number, origin?: [number, number]}, devices?: string[],
 *   links?: [string, string][], label?: string, badge?: string, dash?: boolean,
 * }[]} groups each in one colour: of a class, of a share of what is hottest, or of an origin among
 *   so many; `badge` stands at the devices' corners and in the legend
 * @property {Record<string, string>} [badges] a text for single devices
 * @property {boolean} [arrows] whether links point where they go
 * @property {boolean} [fade] whether the other links step back
 *
 * @typedef {object} Sketch what a solver is to use of the cluster
 * @property {boolean} drawing whether clicks change it
 * @property {[string, string][]} off links that are not used
 * @property {Record<string, number>} relays GPUs that send for others, and for how many
 *
 * @typedef {{devices: string[], links: [string, string][], hosts: string[]}} Selection
 * @typedef {{bandwidth: number, alpha: number, medium: string}} LinkPreset
 * @typedef {{x1: number, y1: number, x2: number, y2: number}} Rect
 * @typedef {{x: number, y: number}} Point
 */

export {};
