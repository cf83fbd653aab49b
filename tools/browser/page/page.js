// What is on the page, for the runner. It runs in a world of its own in each frame: the page sees none of it.
globalThis.seer ??= (() => {
  const refs = new WeakMap(); // element -> its number, for as long as the document lives
  const elements = new Map(); // number -> WeakRef of the element
  const frames = new WeakMap(); // frame element -> number of its frame
  const closed = new WeakMap(); // host -> its closed shadow root, as the runner found it
  const nameMax = 150, textMax = 4000, valueMax = 200, depthMax = 400;

  const set = (words) => new Set(words.split(' '));
  const interactive = set(
    'link button textbox searchbox combobox listbox checkbox radio switch slider spinbutton option menuitem ' +
    'menuitemcheckbox menuitemradio tab treeitem');
  const fromContent = set(
    'button checkbox columnheader heading link menuitem menuitemcheckbox menuitemradio option radio rowheader ' +
    'switch tab tooltip treeitem');
  const known = set(
    'alert alertdialog application article banner blockquote button caption cell checkbox code columnheader ' +
    'combobox complementary contentinfo definition deletion dialog directory document emphasis feed figure form ' +
    'generic grid gridcell group heading img insertion link list listbox listitem log main marquee math menu ' +
    'menubar menuitem menuitemcheckbox menuitemradio meter navigation none note option paragraph presentation ' +
    'progressbar radio radiogroup region row rowgroup rowheader scrollbar search searchbox separator slider ' +
    'spinbutton status strong subscript superscript switch tab table tablist tabpanel term textbox time timer ' +
    'toolbar tooltip tree treegrid treeitem');
  const tags = {
    ADDRESS: 'group', ARTICLE: 'article', ASIDE: 'complementary', BLOCKQUOTE: 'blockquote', BUTTON: 'button', CANVAS: 'canvas',
    CAPTION: 'caption', DATALIST: 'listbox', DD: 'definition', DETAILS: 'group', DIALOG: 'dialog', DT: 'term', FIELDSET: 'group',
    FIGURE: 'figure', H1: 'heading', H2: 'heading', H3: 'heading', H4: 'heading', H5: 'heading', H6: 'heading', HR: 'separator',
    IFRAME: 'iframe', FRAME: 'iframe', LI: 'listitem', MAIN: 'main', MATH: 'math', MENU: 'list', METER: 'meter',
    NAV: 'navigation', OL: 'list', OPTGROUP: 'group', OPTION: 'option', OUTPUT: 'status', P: 'paragraph', PROGRESS: 'progressbar',
    SEARCH: 'search', TABLE: 'table', TBODY: 'rowgroup', TEXTAREA: 'textbox', TFOOT: 'rowgroup', THEAD: 'rowgroup', TR: 'row',
    UL: 'list', VIDEO: 'video', AUDIO: 'audio',
  };
  const inputs = {
    button: 'button', submit: 'button', reset: 'button', image: 'button', file: 'button', color: 'button', checkbox: 'checkbox',
    radio: 'radio', range: 'slider', number: 'spinbutton', search: 'searchbox',
  };
  const kinds = set('password date datetime-local month week time color file email url tel'); // of inputs that are shown
  const bare = set('separator cell gridcell img'); // are shown even with nothing in them
  const leaves = set('INPUT TEXTAREA IFRAME FRAME CANVAS VIDEO AUDIO METER PROGRESS svg');
  const skipped = set('SCRIPT STYLE NOSCRIPT TEMPLATE HEAD META LINK TITLE BASE SOURCE TRACK PARAM DATALIST MAP');

  const squeeze = (s) => s.replace(/[\s\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+/g, ' ').trim();
  const cut = (s, n) => {
    const runes = s.length > n ? Array.from(s) : [];
    return runes.length > n ? runes.slice(0, n).join('') + '…' : s;
  };
  const attr = (el, name) => squeeze((el.getAttribute(name) ?? '').slice(0, 10000));
  const isElement = (n) => n.nodeType === Node.ELEMENT_NODE;
  const rootOf = (el) => el.shadowRoot ?? closed.get(el);
  const parentOf = (n) => n.assignedSlot ?? n.parentElement ?? n.getRootNode().host ?? null;
  function contains(outer, n) {
    for (; n; n = parentOf(n)) if (n === outer) return true;
    return false;
  }
  function childrenOf(el) {
    if (el.localName === 'slot') {
      const assigned = el.assignedNodes();
      if (assigned.length) return assigned;
    }
    return (rootOf(el) ?? el).childNodes;
  }
  const has = (el, selector) => { try { return el.matches(selector); } catch { return false; } };

  function roleOf(el) {
    const explicit = attr(el, 'role').toLowerCase().split(' ').find((r) => known.has(r));
    const plain = explicit === 'none' || explicit === 'presentation' || explicit === 'generic';
    if (explicit && !plain) return explicit;
    const own = tagRole(el);
    return plain && !interactive.has(own) ? '' : own;
  }
  function tagRole(el) {
    switch (el.tagName) {
      case 'A': case 'AREA': return el.hasAttribute('href') ? 'link' : '';
      case 'HEADER': return el.closest('article,aside,main,nav,section') ? '' : 'banner';
      case 'FOOTER': return el.closest('article,aside,main,nav,section') ? '' : 'contentinfo';
      case 'SECTION': return named(el) ? 'region' : '';
      case 'FORM': return named(el) ? 'form' : '';
      case 'SUMMARY': return el.parentElement?.tagName === 'DETAILS' ? 'button' : '';
      case 'IMG': return el.getAttribute('alt') === '' && !named(el) ? '' : 'img';
      case 'svg': return named(el) || el.querySelector(':scope > title') ? 'img' : '';
      case 'SELECT': return el.multiple || el.size > 1 ? 'listbox' : 'combobox';
      case 'TH': return el.scope === 'row' || el.scope === 'rowgroup' ? 'rowheader' : 'columnheader';
      case 'TD': return has(el.closest('table') ?? el, '[role=grid],[role=treegrid]') ? 'gridcell' : 'cell';
      case 'INPUT': {
        if (el.type === 'hidden') return '';
        const role = inputs[el.type] ?? 'textbox';
        return el.list && (role === 'textbox' || role === 'searchbox') ? 'combobox' : role;
      }
    }
    if (el.isContentEditable && !el.parentElement?.isContentEditable) return 'textbox';
    return tags[el.tagName] ?? '';
  }
  // A list of an element's labels costs a look at the whole document: a walk has them all at once.
  let labels = null;
  const labelsOf = (el) => labels && el.getRootNode() === document ? labels.get(el) ?? [] : Array.from(el.labels ?? []);
  function allLabels() {
    const all = new Map();
    for (const label of document.getElementsByTagName('label')) {
      const to = label.control;
      if (to) all.set(to, [...all.get(to) ?? [], label]);
    }
    return all;
  }
  const named = (el) => attr(el, 'aria-label') || attr(el, 'aria-labelledby') || attr(el, 'title');

  // textOf is the text that a person hears of an element, within limits.
  function textOf(el, hiddenToo) {
    let out = '', seen = 0;
    (function add(n, depth) {
      if (out.length > nameMax * 4 || ++seen > 400 || depth > 60) return;
      if (n.nodeType === Node.TEXT_NODE) { out += n.data.slice(0, 2000); return; }
      if (!isElement(n) || skipped.has(n.tagName)) return;
      if (n !== el) {
        if (!hiddenToo && (n.getAttribute('aria-hidden') === 'true' || !visible(n))) return;
        const label = attr(n, 'aria-label');
        if (label) { out += ' ' + label + ' '; return; }
        if (n.tagName === 'IMG') { out += ' ' + attr(n, 'alt') + ' '; return; }
        if (n.tagName === 'SELECT' || n.tagName === 'TEXTAREA') return;
        if (n.tagName === 'INPUT') { if (/^(button|submit|reset)$/.test(n.type)) out += ' ' + n.value + ' '; return; }
      }
      if (n.tagName === 'svg') { const t = n.querySelector(':scope > title'); if (t) out += ' ' + t.textContent + ' '; return; }
      const apart = n === el || n.tagName === 'BR' || !/^(inline|contents|ruby)/.test(getComputedStyle(n).display) ? ' ' : '';
      out += apart;
      for (const child of childrenOf(n)) add(child, depth + 1);
      out += apart;
    })(el, 0);
    return squeeze(out);
  }

  function nameOf(el, role) {
    const ids = attr(el, 'aria-labelledby');
    if (ids) {
      const name = squeeze(ids.split(' ').slice(0, 20).map((id) => {
        const by = el.getRootNode().getElementById?.(id);
        return by ? attr(by, 'aria-label') || textOf(by, true) : '';
      }).join(' '));
      if (name) return name;
    }
    const label = attr(el, 'aria-label');
    if (label) return label;
    const child = (selector) => { const c = el.querySelector(':scope > ' + selector); return c ? textOf(c) : ''; };
    let name = '';
    switch (el.tagName) {
      case 'INPUT': case 'SELECT': case 'TEXTAREA': case 'METER': case 'PROGRESS': case 'OUTPUT':
        name = squeeze(labelsOf(el).slice(0, 10).map((l) => textOf(l)).join(' '));
        if (name || el.tagName !== 'INPUT') break;
        if (el.type === 'submit') name = squeeze(el.value) || 'Submit';
        else if (el.type === 'reset') name = squeeze(el.value) || 'Reset';
        else if (el.type === 'button') name = squeeze(el.value);
        else if (el.type === 'image') name = attr(el, 'alt') || attr(el, 'value') || attr(el, 'title') || 'Submit';
        else if (el.type === 'file') name = attr(el, 'title') || 'Choose File';
        break;
      case 'BUTTON': name = squeeze(labelsOf(el).slice(0, 10).map((l) => textOf(l)).join(' ')); break;
      case 'IMG': case 'AREA': name = attr(el, 'alt'); break;
      case 'FIELDSET': name = child('legend'); break;
      case 'TABLE': name = child('caption'); break;
      case 'FIGURE': name = child('figcaption'); break;
      case 'svg': name = child('title'); break;
      case 'OPTION': case 'OPTGROUP': name = squeeze(el.label); break;
    }
    if (!name && (fromContent.has(role) || role === 'clickable')) name = textOf(el);
    return name || attr(el, 'title') || attr(el, /^(INPUT|TEXTAREA)$/.test(el.tagName) ? 'placeholder' : 'aria-placeholder');
  }

  function valueOf(el, role) {
    switch (el.tagName) {
      case 'INPUT':
        if (el.type === 'password') return el.value ? Array.from(el.value).length + ' characters' : '';
        if (el.type === 'file') return Array.from(el.files).slice(0, 10).map((f) => f.name).join(', ');
        return /^(button|submit|reset|image|checkbox|radio)$/.test(el.type) ? '' : el.value;
      case 'TEXTAREA': return el.value;
      case 'SELECT': return Array.from(el.selectedOptions).slice(0, 20).map((o) => squeeze(o.label)).join(', ');
      case 'PROGRESS': return el.hasAttribute('value') ? Math.round(100 * el.position) + ' %' : '';
      case 'METER': return String(el.value);
    }
    if (el.isContentEditable && role === 'textbox') return textOf(el);
    return attr(el, 'aria-valuetext') || attr(el, 'aria-valuenow') || (/^(combobox|textbox)$/.test(role) ? textOf(el) : '');
  }

  function statesOf(el, role) {
    const all = [], aria = (name) => el.getAttribute('aria-' + name);
    if (role === 'heading') all.push('level=' + (+aria('level') || +(/^H(\d)$/.exec(el.tagName)?.[1] ?? 2)));
    if (role === 'checkbox' || role === 'radio' || role === 'switch' || role.startsWith('menuitem')) {
      const native = el.tagName === 'INPUT';
      if (native ? el.indeterminate : aria('checked') === 'mixed') all.push('checked=mixed');
      else if (native ? el.checked : aria('checked') === 'true') all.push('checked');
    }
    if (has(el, ':disabled') || aria('disabled') === 'true') all.push('disabled');
    if (el.tagName === 'OPTION' ? el.selected : aria('selected') === 'true') all.push('selected');
    if (el.tagName === 'SUMMARY') all.push(el.parentElement?.open ? 'expanded' : 'collapsed');
    else if (aria('expanded') === 'true') all.push('expanded');
    else if (aria('expanded') === 'false') all.push('collapsed');
    if (aria('pressed') === 'true') all.push('pressed');
    if (aria('current') && aria('current') !== 'false') all.push('current');
    if (el.required || aria('required') === 'true') all.push('required');
    if (el.readOnly || aria('readonly') === 'true') all.push('readonly');
    if (aria('invalid') === 'true' || has(el, ':user-invalid')) all.push('invalid');
    if (el.multiple || aria('multiselectable') === 'true') all.push('multiple');
    if (el.tagName === 'SELECT' && el.options.length > 20) all.push('options=' + el.options.length);
    if (el.tagName === 'INPUT' && kinds.has(el.type)) all.push(el.type);
    if (el.tagName === 'INPUT' && el.type === 'range') all.push('min=' + (el.min || 0), 'max=' + (el.max || 100));
    if (el.draggable && !/^(A|IMG)$/.test(el.tagName)) all.push('draggable');
    if (role === 'canvas') all.push(el.clientWidth + 'x' + el.clientHeight);
    if (role === 'video' || role === 'audio') all.push(el.paused ? 'paused' : 'playing');
    if (el === el.getRootNode().activeElement && el !== document.body) all.push('focused');
    return all;
  }

  const visible = (el) => el.checkVisibility({ visibilityProperty: true }) || getComputedStyle(el).display === 'contents';
  // Where an element is: 0 in view, -1 above, 1 below or beside.
  function whereIs(el) {
    const r = el.getBoundingClientRect();
    if (r.bottom <= 0) return -1;
    return r.top < innerHeight && r.left < innerWidth && r.right > 0 ? 0 : 1;
  }
  function scrolls(el, style) {
    return /^(auto|scroll)$/.test(style.overflowY) && el.scrollHeight > el.clientHeight + 4 && el.clientHeight > 20 &&
      el !== document.scrollingElement && el !== document.body && el !== document.documentElement;
  }

  // inView collects the elements in view. Of many siblings, which most likely stand below each other, it looks for the first one
  // in view by halves.
  function inView(el, found) {
    if (found.size > 20000) return;
    found.add(el);
    const kids = Array.from((rootOf(el) ?? el).children);
    let i = 0, n = kids.length;
    if (n > 200) {
      for (let low = 0; low < n;) {
        const middle = (low + n) >> 1;
        if (whereIs(kids[middle]) < 0) low = i = middle + 1; else n = middle;
      }
      n = kids.length;
    }
    for (let beyond = 0; i < n && beyond < 50; i++) {
      if (whereIs(kids[i]) === 0) inView(kids[i], found); else beyond++;
    }
  }
  let lastHollow = [];

  // walk lists what is on the page. Of a page with more elements than the budget it lists the first ones, and those in view.
  function walk(o) {
    let next = o.next, visited = 0, pending = '', pendingAt = 0;
    const items = [], hollow = [];
    const root = document.body ?? document.documentElement;
    if (!root) return { items, next, left: 0, hollow: 0 };
    labels = allLabels();
    const total = document.getElementsByTagName('*').length;
    const keep = new Set();
    if (total > o.budget) inView(root, keep);
    const refOf = (el) => {
      let ref = refs.get(el);
      if (!ref) { refs.set(el, ref = next++); elements.set(ref, new WeakRef(el)); }
      return ref;
    };
    const flush = (depth) => {
      const text = squeeze(pending);
      pending = '';
      if (text) items.push({ d: depth, r: 'text', t: cut(text, textMax), w: pendingAt });
    };
    // parent is what a child has from it: depth in the list, depth in the document, cursor, whether its text is said already, ...
    function visit(n, p) {
      if (n.nodeType === Node.TEXT_NODE) {
        if (p.quiet || p.hidden) return;
        const range = pending ? pendingAt : p.where();
        pendingAt = range;
        if (pending.length < 4 * textMax) pending += n.data.slice(0, 4 * textMax);
        return;
      }
      if (!isElement(n) || skipped.has(n.tagName)) return;
      if (visited >= o.budget && !keep.has(n) || p.deep > depthMax) return;
      visited++;
      const el = n, option = p.select && /^(OPTION|OPTGROUP)$/.test(el.tagName);
      const upload = el.tagName === 'INPUT' && el.type === 'file';
      if (el.getAttribute('aria-hidden') === 'true' || el.inert) return;
      const style = getComputedStyle(el);
      if (!option && !upload && (style.display === 'none' || !el.checkVisibility() && style.display !== 'contents')) return;
      const hidden = !option && style.visibility !== 'visible';
      if (el.tagName === 'BR') { pending += ' '; return; }
      let at;
      const where = () => option ? p.where() : at ??= style.display === 'contents' ? p.where() : whereIs(el);
      const block = !/^(inline|contents|ruby)/.test(style.display) || el.tagName === 'IFRAME';
      let role = hidden && !upload ? '' : roleOf(el);
      const acts = interactive.has(role), scrollable = !hidden && !acts && scrolls(el, style);
      let clickable = false;
      if (!acts && !hidden && !option && el !== root) {
        const label = el.tagName === 'LABEL' && el.control && visible(el.control);
        clickable = !label && (style.cursor === 'pointer' && p.cursor !== 'pointer' || el.hasAttribute('onclick') ||
          el.tabIndex >= 0 && el.hasAttribute('tabindex') || el.getAttribute('draggable') === 'true') && !p.acts;
        if (clickable && !role) role = 'clickable';
      }
      if (!role && scrollable) role = 'group';
      // What names another element is said there.
      let says = /^(LEGEND|CAPTION)$/.test(el.tagName) ? el.parentElement : null;
      if (el.tagName === 'LABEL' && el.control && visible(el.control)) says = el.control;
      const said = says && !named(says);
      if (said && role === 'caption') role = '';
      if (el.localName.includes('-') && !rootOf(el) && !el.childNodes.length && hollow.length < 50) hollow.push(el);
      const inner = {
        ...p, deep: p.deep + 1, cursor: style.cursor, where, hidden, quiet: p.quiet || said,
        select: el.tagName === 'SELECT' || p.select && option,
      };
      if (!role) {
        if (block) flush(p.depth);
        for (const child of childrenOf(el)) visit(child, inner);
        if (block) flush(p.depth);
        return;
      }
      flush(p.depth);
      const whole = role === 'option' && p.select ? squeeze(el.label) : nameOf(el, role);
      const short = role === 'clickable' ? 80 : nameMax;
      const item = { d: p.depth, r: role, n: cut(whole, short), s: statesOf(el, role), w: where() };
      const value = cut(squeeze(valueOf(el, role).slice(0, 10000)), valueMax);
      if (value) item.v = value;
      if (scrollable) item.s.push('scrollable');
      if (clickable && role !== 'clickable') item.s.push('clickable');
      if (upload && (hidden || !visible(el))) item.s.push('hidden');
      if (role === 'iframe') item.f = frames.get(el) ?? 0;
      if (acts || clickable || scrollable || /^(iframe|canvas|video|audio)$/.test(role)) item.e = refOf(el);
      if (option && el.index >= 20 && !el.selected) item.x = true;
      items.push(item);
      if (leaves.has(el.tagName) || role === 'textbox' || role === 'img') return;
      const from = items.length;
      inner.depth = p.depth + 1;
      inner.acts = p.acts || acts;
      inner.quiet = inner.quiet || (fromContent.has(role) || role === 'clickable') && item.n === whole && item.n !== '';
      for (const child of childrenOf(el)) visit(child, inner);
      flush(p.depth + 1);
      // An element with nothing but text is one line.
      if (items.length === from + 1 && items[from].r === 'text' && !item.v) item.t = items.pop().t;
      else if (items.length === from && !item.n && !item.e && !item.v && !bare.has(role)) items.pop();
    }
    const modal = Array.from(document.querySelectorAll('dialog:modal')).pop();
    const top = { depth: 0, deep: 0, cursor: 'auto', where: () => 0, quiet: false, hidden: false, acts: false, select: false };
    visit(modal ?? root, top);
    flush(0);
    lastHollow = hollow;
    labels = null;
    return {
      items, next, left: Math.max(0, visited >= o.budget ? total - visited : 0), hollow: hollow.length, modal: !!modal,
      title: cut(squeeze(document.title), 300), loading: document.readyState === 'loading',
      visited,
    };
  }

  const it = {
    walk, roleOf, nameOf, valueOf, visible, parentOf, contains, squeeze, cut, textOf, rootOf, frames,
    // hollow are the custom elements of the last walk without anything inside that can be seen from here.
    hollow: () => lastHollow,
    reveal(root) { closed.set(root.host, root); },
    frame(el, number) { frames.set(el, number); },
    get(ref) {
      const el = elements.get(ref)?.deref();
      if (el?.isConnected) return el;
      elements.delete(ref);
      return null;
    },
    // say names an element as its line does.
    say(el) {
      const role = roleOf(el) || 'clickable', name = cut(nameOf(el, role), role === 'clickable' ? 80 : nameMax);
      return { role, name };
    },
  };
  return it;
})();
