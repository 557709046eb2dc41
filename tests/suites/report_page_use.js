// SPDX-License-Identifier: Apache-2.0
// Uses the report's page as a person would and writes what failed into #use; the suite `report`
// appends it to a copy of a page that has a timeline, where a browser is at hand.
(() => {
  const failed = [];
  const check = (what, ok) => { if (!ok) failed.push(what); };
  const text = (selector) => document.querySelector(selector).textContent;
  const key = (target, name) => target.dispatchEvent(new KeyboardEvent('keydown', {key: name, bubbles: true}));

  const canvas = document.querySelector('canvas');
  canvas.setPointerCapture = () => {};  // synthetic pointers cannot be captured
  const pointer = (type, x) => {
    const box = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new PointerEvent(type, {clientX: box.left + x, clientY: box.top + 30, button: 0, pointerId: 1, bubbles: true}));
  };
  const range = () => text('#timeline .bar-row .soft');
  const whole = range();
  pointer('pointerdown', 100);
  pointer('pointermove', 300);
  pointer('pointerup', 300);
  const dragged = range();
  check('a drag zooms in', dragged !== whole);
  pointer('pointermove', 200);
  check('hovering tells the shares', /compute .*idle/.test(text('#tip')));
  key(canvas, 'ArrowRight');
  check('an arrow moves', range() !== dragged);
  key(canvas, '0');
  check('0 shows all', range() === whole);
  key(canvas, '+');
  check('+ zooms in', range() !== whole);
  canvas.dispatchEvent(new MouseEvent('dblclick', {bubbles: true}));
  check('a double click shows all', range() === whole);

  const heads = [...document.querySelectorAll('#kernels th button')];
  const first = () => text('#kernels td.what button');
  heads[0].click();
  const ascending = first();
  check('names sort', heads[0].parentElement.getAttribute('aria-sort') === 'ascending');
  heads[0].click();
  check('and the other way', first() !== ascending && heads[0].parentElement.getAttribute('aria-sort') === 'descending');
  const filter = document.getElementById('filter');
  key(document, '/');
  check('/ goes to the filter', document.activeElement === filter);
  filter.value = 'kernel_1 other';
  filter.dispatchEvent(new Event('input'));
  check('the filter filters', document.querySelectorAll('#kernels tr.kernel').length > 0 && /^\d+ of/.test(text('#kernels [role=status]')) && first().includes('kernel_1'));
  document.querySelector('#kernels td.what button').click();
  check('a row opens', document.querySelectorAll('tr.detail svg rect.bin').length > 0);
  key(document.activeElement, 'Escape');
  check('Escape closes it', document.querySelectorAll('tr.detail').length === 0);
  const linked = doc.kernels[3].id;
  location.hash = `#kernel=${linked}`;
  window.dispatchEvent(new Event('hashchange'));
  const target = document.querySelector(`tr[data-kernel="${linked}"]`);
  check('a link opens its row', target !== null && target.nextElementSibling.className === 'detail');
  check('rows name their profile', target !== null && target.dataset.profile === doc.profile.id && document.getElementById(`profile-${doc.profile.id}`) !== null);

  const result = document.createElement('pre');
  result.id = 'use';
  result.textContent = failed.length ? `FAILED: ${failed.join(', ')}` : 'everything can be used';
  document.body.append(result);
})();
