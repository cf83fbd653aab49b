// The page's chance and time are the same in each run: numbers from a fixed seed, and a day on which the first page begins.
((start, real) => {
  let state = 0x2f6e2b1;
  Math.random = function random() {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  if (real && !/(^|\.)(test|localhost)$|^127\./.test(location.hostname)) return;
  const Real = Date;
  const now = () => Real.now() + start;
  const Fixed = new Proxy(Real, {
    construct: (to, args, as) => Reflect.construct(to, args.length ? args : [now()], as === Fixed ? to : as),
    apply: () => new Real(now()).toString(),
    get: (of, key) => (key === 'now' ? now : Reflect.get(of, key)),
  });
  Real.prototype.constructor = Fixed;
  Date = Fixed;
})
