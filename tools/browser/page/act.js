// What is done with elements, beside real mouse and keys.
seer.act ??= (() => {
  const { roleOf, nameOf, valueOf, visible, parentOf, contains, squeeze, cut, textOf, rootOf, frames } = seer;
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const fire = (el) => {
    el.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
    el.dispatchEvent(new Event('change', { bubbles: true }));
  };
  const rectOf = (el) => { const r = el.getBoundingClientRect(); return [r.x, r.y, r.width, r.height].join(); };
  const fileInput = (el) => {
    const found = el.control ?? el;
    return found.tagName === 'INPUT' && found.type === 'file' ? found : null;
  };
  const formats = {
    date: '2026-11-23', month: '2026-11', week: '2026-W48', time: '14:30', 'datetime-local': '2026-11-23T14:30', color: '#ff8800',
    range: '50',
  };
  const textInputs = new Set(['text', 'search', 'url', 'tel', 'email', 'password', 'number']);

  // kindOf says how an element is filled in.
  function kindOf(el) {
    if (el.tagName === 'SELECT') return 'select';
    if (el.tagName === 'OPTION') return 'option';
    if (el.tagName === 'TEXTAREA' || el.isContentEditable) return 'text';
    if (el.tagName !== 'INPUT') return '';
    if (textInputs.has(el.type)) return 'text';
    return formats[el.type] ? 'set' : el.type;
  }
  // deepest is the element at a point, through shadow roots.
  function deepest(x, y) {
    let el = document.elementFromPoint(x, y);
    for (let root; el && (root = rootOf(el)); ) {
      const inner = root.elementFromPoint(x, y);
      if (!inner || inner === el) break;
      el = inner;
    }
    return el;
  }
  const describe = (el) => {
    const role = roleOf(el), name = role ? cut(nameOf(el, role) || textOf(el.querySelector('h1,h2,h3,h4,legend') ?? el), 80) : '';
    if (role && role !== 'paragraph') return role + (name ? ` "${name}"` : '');
    const text = cut(textOf(el), 60), id = el.id ? '#' + el.id : el.classList.length ? '.' + el.classList[0] : '';
    return `<${el.localName}${cut(id, 40)}>` + (text ? ` "${text}"` : '');
  };

  return {
    // ready waits until an element stands still, and says what it is.
    async ready(el) {
      for (let i = 0, before = ''; i < 10; i++) {
        const now = rectOf(el);
        if (now === before) break;
        before = now;
        await wait(i < 2 ? 16 : 50);
      }
      const label = el.tagName === 'LABEL' && el.control;
      return {
        ...seer.say(el), kind: kindOf(el), type: el.type ?? '', visible: visible(el) || el.tagName === 'OPTION',
        disabled: el.matches(':disabled') || !!el.closest('[aria-disabled=true]') || !!label && label.matches(':disabled'),
        readonly: !!el.readOnly || el.getAttribute('aria-readonly') === 'true', file: !!fileInput(el),
      };
    },
    centre(el) { el.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' }); },
    view: () => [innerWidth, innerHeight, scrollX, scrollY],
    // covers says what lies over an element, where the mouse would hit something else; "" if it would not.
    covers(el, hit) {
      if (hit && hit.nodeType !== Node.ELEMENT_NODE) hit = parentOf(hit);
      if (!hit) return 'nothing that can be clicked';
      const parts = [el, ...el.labels ?? [], ...el.control ? [el.control] : []];
      if (parts.some((part) => contains(part, hit))) return '';
      let top = hit, best = null;
      for (let n = hit; n && !contains(n, el); n = parentOf(n)) {
        top = n;
        const role = roleOf(n);
        const dialog = /dialog$/.test(role) ? n : n.querySelector('[role=dialog],[role=alertdialog],dialog[open]');
        if (dialog && visible(dialog) && !contains(dialog, el)) return describe(dialog);
        if (!best && role && role !== 'paragraph') best = n;
      }
      return contains(top, el) ? 'its own surroundings ' + describe(top) : describe(best ?? top);
    },
    describe,
    option(el) {
      const list = el.closest('select');
      if (!list) return 'This option belongs to no list.';
      if (list.matches(':disabled') || el.matches(':disabled')) return 'This option is disabled.';
      if (list.multiple) el.selected = !el.selected;
      else list.selectedIndex = el.index;
      list.focus();
      fire(list);
      return '';
    },
    // pick chooses an option of a list by what it says.
    pick(list, text) {
      const want = squeeze(text).toLowerCase(), all = Array.from(list.options).filter((o) => !o.disabled);
      const said = (o) => squeeze(o.label).toLowerCase();
      let found = all.filter((o) => squeeze(o.label) === squeeze(text));
      if (!found.length) found = all.filter((o) => said(o) === want || o.value.toLowerCase() === want);
      if (!found.length) found = all.filter((o) => said(o).startsWith(want));
      if (found.length === 1) { seer.act.option(found[0]); return { ok: true, value: squeeze(found[0].label) }; }
      const have = found.length ? found : all;
      return { ok: false, have: have.slice(0, 30).map((o) => cut(squeeze(o.label), 60)), count: have.length };
    },
    // set gives a field whose parts cannot be typed a value.
    set(el, text) {
      const before = el.value, want = text.trim();
      el.value = want;
      const range = el.type === 'range', number = Number(want);
      const same = el.value === want || range && Number(el.value) === number || el.value === want.toLowerCase();
      if (want !== '' && !same) {
        const got = el.value;
        el.value = before;
        if (!range) return `It takes a ${el.type} such as ${formats[el.type]}.`;
        return `It takes a number from ${el.min || 0} to ${el.max || 100} in steps of ${el.step || 1}` +
          (Number.isFinite(number) ? `; the nearest is ${got}.` : '.');
      }
      el.focus();
      fire(el);
      return '';
    },
    // select marks the whole text of a field that has the focus, and says whether there is any; null if it has no focus.
    select(el) {
      const active = () => el.getRootNode().activeElement;
      if (active() !== el && !el.contains(active())) el.focus({ preventScroll: true });
      if (active() !== el && !el.contains(active())) return null;
      if (el.isContentEditable) {
        getSelection().selectAllChildren(el);
        return el.textContent !== '';
      }
      el.select();
      return el.value !== '' || el.type === 'number';
    },
    value: (el) => cut(valueOf(el, roleOf(el)), 200),
    field: (el) => el.querySelector('input:not([type=hidden]),textarea,[contenteditable=""],[contenteditable=true]'),
    file: fileInput,
    // scroll moves what holds an element, or what is at a point, and says what moved.
    scroll(el, x, y, by) {
      let at = el ?? deepest(x, y);
      if (!el && at && frames.get(at)) {
        const r = at.getBoundingClientRect();
        return { frame: frames.get(at), x: x - r.x - at.clientLeft, y: y - r.y - at.clientTop };
      }
      const page = document.scrollingElement ?? document.documentElement;
      const said = (n) => ({
        top: Math.round(n.scrollTop), height: n.scrollHeight, view: n.clientHeight, of: n === page ? 'page' : title(n),
      });
      const title = (n, role = roleOf(n) || 'group', name = nameOf(n, role)) => role + (name ? ` "${cut(name, 80)}"` : '');
      let inner = null;
      for (let n = at; ; n = parentOf(n)) {
        if (!n) n = page;
        const styled = n === page || /^(auto|scroll)$/.test(getComputedStyle(n).overflowY);
        if (styled && n.scrollHeight > n.clientHeight + 1) {
          const before = n.scrollTop;
          n.scrollBy({ top: by, behavior: 'instant' });
          const moved = Math.round(n.scrollTop - before);
          if (moved) return { moved, ...said(n) };
          inner ??= said(n);
          if (el) break;
        }
        if (n === page) break;
      }
      return { moved: 0, ...(inner ?? said(page)) };
    },
    // images are the pictures of this frame.
    images() {
      const list = [];
      for (const el of document.querySelectorAll('img,input[type=image],video[poster]')) {
        const src = el.currentSrc && el.tagName === 'IMG' ? el.currentSrc : el.poster || el.src, r = el.getBoundingClientRect();
        if (!src) continue;
        list.push({
          src: src.startsWith('data:') && src.length > 100 ? cut(src, 60) + ` (${src.length} characters)` : cut(src, 2000),
          alt: cut(squeeze(el.alt ?? ''), 200),
          width: el.naturalWidth || Math.round(r.width), height: el.naturalHeight || Math.round(r.height),
          visible: visible(el) && r.width > 0 && r.bottom > 0 && r.top < innerHeight && r.right > 0 && r.left < innerWidth,
        });
        if (list.length >= 2000) break;
      }
      return list;
    },
    // marks are where the elements with refs are in view, and where frames begin.
    marks(numbers) {
      const marks = [], inner = [];
      for (const ref of numbers) {
        const el = seer.get(ref);
        if (!el || !visible(el)) continue;
        const r = el.getBoundingClientRect(), frame = frames.get(el);
        const x = r.x + Math.min(r.width / 2, innerWidth - r.x - 1), y = r.y + Math.min(r.height / 2, innerHeight - r.y - 1);
        if (frame) inner.push({ frame, x: r.x + el.clientLeft, y: r.y + el.clientTop, w: el.clientWidth, h: el.clientHeight });
        const beside = r.bottom <= 0 || r.top >= innerHeight || r.right <= 0 || r.left >= innerWidth;
        if (r.width < 2 || r.height < 2 || beside) continue;
        const hit = deepest(Math.max(0, x), Math.max(0, y));
        if (hit && !contains(el, hit) && !contains(hit, el)) continue;
        marks.push({ ref, x: r.x, y: r.y, w: r.width, h: r.height });
        if (marks.length >= 500) break;
      }
      return { marks, inner };
    },
    shows: (text) => squeeze(document.body?.innerText ?? '').toLowerCase().includes(squeeze(text).toLowerCase()),
  };
})();
