/**
 * The smallest host: a plain object that speaks anywidget's model. The Dash component, the
 * standalone page and the tests use it.
 */
export class PlainModel {
  /** @param {object} state @param {(changed: object) => void} [onSave] told what was saved */
  constructor(state, onSave = () => {}) {
    this.state = { ...state };
    this.onSave = onSave;
    this.changed = {};
    /** @type {Map<string, Set<Function>>} */
    this.listeners = new Map();
  }

  get(key) {
    return this.state[key];
  }

  /** Change a value from the view's side. */
  set(key, value) {
    if (this.state[key] === value) return;
    this.changed[key] = value;
    this.receive(key, value);
  }

  save_changes() {
    const changed = this.changed;
    this.changed = {};
    if (Object.keys(changed).length) this.onSave(changed);
  }

  /** Change a value from the host's side. */
  receive(key, value) {
    if (this.state[key] === value) return;
    this.state[key] = value;
    for (const listener of this.listeners.get(`change:${key}`) ?? []) listener(this, value);
  }

  on(event, listener) {
    if (!this.listeners.has(event)) this.listeners.set(event, new Set());
    this.listeners.get(event)?.add(listener);
  }

  off(event, listener) {
    this.listeners.get(event)?.delete(listener);
  }
}
