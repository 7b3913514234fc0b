/**
 * Two fingers on the canvas zoom and move the view together. Cytoscape takes two fingers that are near
 * each other for a context click and zooms only once they have gone apart, so the pinch is our own.
 *
 * @typedef {import("./canvas.js").Canvas} Canvas
 * @typedef {import("./types.js").Point} Point
 */

/**
 * What two fingers do to the view: by how much it grows, and where their middle goes.
 *
 * @param {[Point, Point]} before @param {[Point, Point]} now
 * @returns {{factor: number, from: Point, to: Point}}
 */
export function pinched(before, now) {
  const far = ([a, b]) => Math.hypot(a.x - b.x, a.y - b.y);
  const middle = ([a, b]) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });
  const [was, is] = [far(before), far(now)];
  return { factor: was > 0 && is > 0 ? is / was : 1, from: middle(before), to: middle(now) };
}

/** Let two fingers zoom and move the view. @param {Canvas} canvas */
export function listenForPinches(canvas) {
  const { stage } = canvas.dom;
  /** @type {[Point, Point] | null} */
  let before = null; // where the two fingers were; null while there are not two
  let pinching = false; // until the last finger is lifted

  /** @param {TouchEvent} event @returns {[Point, Point]} in the stage */
  const fingers = ({ touches: [a, b] }) => {
    const { left, top } = stage.getBoundingClientRect();
    return [{ x: a.clientX - left, y: a.clientY - top }, { x: b.clientX - left, y: b.clientY - top }];
  };

  /** @param {TouchEvent} event */
  const begin = (event) => {
    if (pinching) event.stopPropagation();
    if (event.touches.length !== 2 || canvas.panels.has(event.target)) return;
    before = fingers(event);
    if (pinching) return;
    pinching = true;
    event.stopPropagation();
    if (canvas.pull && !canvas.pull.keyboard) canvas.pull = null;
    // Cytoscape forgets the first finger, though not what it is on; what it has dragged stays there.
    const { cy } = canvas.stage;
    stage.dispatchEvent(new Event("touchcancel", { bubbles: true }));
    Object.assign(/** @type {any} */ (cy).renderer().touchData, { start: null, singleTouchMoved: true });
    cy.nodes(":grabbed").emit("dragfree");
  };

  /** @param {TouchEvent} event */
  const go = (event) => {
    if (!pinching) return;
    event.stopPropagation();
    event.preventDefault();
    if (!before || event.touches.length < 2) return;
    const now = fingers(event);
    const { factor, from, to } = pinched(before, now);
    before = now;
    canvas.zoom(factor, from);
    canvas.stage.cy.panBy({ x: to.x - from.x, y: to.y - from.y });
    canvas.wake();
  };

  /** @param {TouchEvent} event */
  const end = ({ isTrusted, touches }) => {
    if (!isTrusted) return; // which is ours
    if (touches.length < 2) before = null;
    if (!touches.length) pinching = false;
  };

  stage.addEventListener("touchstart", begin, { capture: true });
  stage.addEventListener("touchmove", go, { capture: true, passive: false });
  stage.addEventListener("touchend", end, { capture: true });
  stage.addEventListener("touchcancel", end, { capture: true });
}
