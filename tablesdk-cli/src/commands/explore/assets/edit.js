// One entity in the panel at the right: it opens beside the grid, is staged without a reload, and Escape closes it. Without this script,
// the same form is a page of its own.

const page = (html) => new DOMParser().parseFromString(html, 'text/html');
const grid = document.getElementById('grid');
// The cell of the grid from which the panel was opened.
let opener = null;
// What drops the changed fields, once that is confirmed.
let pending = null;
const linkOf = (cell) => cell?.closest('tr').querySelector('td.key a');
const headingOf = (cell) => grid.tHead.rows[0].cells[cell.cellIndex];

const panel = () => {
  const known = document.getElementById('panel');
  if (known) return known;
  const made = document.createElement('aside');
  made.id = 'panel';
  made.className = 'panel';
  made.setAttribute('aria-label', 'Entity');
  document.querySelector('main').after(made);
  return made;
};

const unmark = () => {
  for (const row of grid.querySelectorAll('tr.open')) row.classList.remove('open');
};
const close = () => {
  const open = document.getElementById('panel');
  if (!open || !grid) return;
  open.remove();
  unmark();
  // The grid focuses the cell that is pressed.
  opener?.dispatchEvent(new MouseEvent('mousedown', { bubbles: true }));
};

// The fields that were changed and are not staged.
const isChanged = (field) => {
  if (field.type === 'checkbox') return field.checked !== field.defaultChecked;
  if (field.options) return field.value !== ([...field.options].find((it) => it.defaultSelected) ?? field.options[0])?.value;
  return field.value !== field.defaultValue;
};
const changed = () => [...document.querySelectorAll('#entity :is(input:not([type=hidden]), select, textarea)')].filter(isChanged);

const unask = () => {
  pending = null;
  document.querySelector('.ask')?.remove();
};
// Goes on at once if no field was changed. Otherwise the panel asks, and Escape or the button goes on.
const leave = (next) => {
  const count = changed().length;
  if (!count) return next();
  unask();
  pending = next;
  const note = document.createElement('div');
  note.className = 'note warn ask';
  note.setAttribute('role', 'alert');
  note.innerHTML = '<span></span> <button type="button" class="link">Drop</button>';
  note.firstChild.textContent = `${count} changed ${count === 1 ? 'field is' : 'fields are'} not staged: Escape drops, Ctrl+Enter stages.`;
  note.lastChild.addEventListener('click', drop);
  document.getElementById('entity').prepend(note);
};
const drop = () => {
  const next = pending;
  unask();
  next();
};
// A form that leaves the page takes its fields with it.
let isSent = false;
addEventListener('submit', (event) => {
  isSent ||= !event.defaultPrevented && Boolean(event.target.closest('#entity'));
});
addEventListener('beforeunload', (event) => {
  if (!isSent && changed().length) event.preventDefault();
});

// The field to begin with: the one that is not valid, the first key of a new entity, or the heading.
const begin = (name) => {
  const known = [...document.querySelectorAll('#panel .property')].find((it) => name && it.dataset.name === name);
  const field = document.querySelector('#entity [autofocus]') ?? known?.querySelector('input:not([type=hidden]), textarea');
  (field ?? document.querySelector('#panel h2'))?.focus();
  field?.select();
};
if (document.querySelector('main #entity [autofocus]')) begin();

// The bar below the content, as the answer has it.
const takeBar = (answer) => {
  const [known, next] = [document.getElementById('bar'), answer.getElementById('bar')];
  if (known && next) known.replaceWith(next);
  else if (next) document.querySelector('main').after(next);
  else known?.remove();
};

// Whether a row of the grid is that of a form. A new entity has none.
const isOf = (row, form) =>
  JSON.parse(row.querySelector('input').value)
    .slice(0, 2)
    .every((key, at) => form.querySelector(`[type=hidden][name=${['pk', 'rk'][at]}]`)?.value === key);

// Shows the entity of an answer; its staged values also in the row of the grid.
const take = (answer) => {
  const content = answer.getElementById('entity') ?? answer.querySelector('main .notice');
  if (!content) return false;
  panel().replaceChildren(content);
  pending = null;
  takeBar(answer);
  const row = opener?.closest('tr');
  if (row && content.matches('#entity') && isOf(row, content)) {
    const columns = [...grid.tHead.rows[0].cells];
    row.classList.toggle('changes', Boolean(content.dataset.staged));
    for (const cell of row.querySelectorAll('td.staged')) cell.classList.remove('staged');
    row.classList.toggle('deleted', content.dataset.staged === 'delete');
    for (const property of content.querySelectorAll('.property[data-shown]')) {
      const cell = row.cells[columns.findIndex((th) => th.dataset.name === property.dataset.name)];
      if (!cell) continue;
      const isStaged = property.classList.contains('staged');
      cell.textContent = property.dataset.shown;
      cell.classList.toggle('staged', isStaged);
      cell.classList.toggle('absent', !property.dataset.shown);
    }
  }
  return true;
};

let last = 0;
const load = async (url, options) => {
  last += 1;
  const own = last;
  try {
    const response = await fetch(url, { redirect: 'follow', ...options });
    const answer = page(await response.text());
    // Another entity was opened meanwhile.
    return own !== last || take(answer);
  } catch {
    return false;
  }
};

const open = async (cell, isEdit) => {
  unmark();
  opener = cell;
  cell.parentElement.classList.add('open');
  const { href } = linkOf(cell);
  if (!(await load(href))) location.href = href;
  else if (isEdit) begin(headingOf(cell).dataset.name);
};

// A click on a key opens its entity; while the panel is open, a click elsewhere in a row does, too.
grid?.addEventListener('click', (event) => {
  const cell = event.target.closest('tbody td');
  const link = event.target.closest('td.key a');
  if (!linkOf(cell) || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  const isOther = document.querySelector('#panel #entity') && !cell.matches('.pick') && !cell.parentElement.matches('.open');
  if (!link && !isOther) return;
  event.preventDefault();
  leave(() => open(cell, Boolean(link)));
});
// A double click, or Enter.
grid?.addEventListener('open', (event) => {
  if (!linkOf(event.target)) return;
  event.preventDefault();
  leave(() => open(event.target, true));
});

// The forms and the links of the panel stay in it. A page of one entity works as it is.
document.addEventListener('submit', async (event) => {
  const form = event.target.closest('#panel form');
  if (!form || form.closest('.details') || 'plain' in form.dataset) return;
  event.preventDefault();
  const fields = new URLSearchParams(new FormData(form, event.submitter));
  // A button has the name `action`, which hides the property.
  const action = form.getAttribute('action');
  const url = event.submitter?.getAttribute('formaction') ?? action;
  const isDiscard = url !== action;
  const shown = await load(url, { method: 'POST', body: fields });
  if (isDiscard && opener) await load(linkOf(opener).href);
  else if (!shown) {
    // As without this script, with the button that was pressed.
    form.dataset.plain = '';
    form.requestSubmit(event.submitter);
  }
  // What was focused is no longer there.
  begin();
  document.querySelector('#panel .problem, #panel .note.bad')?.scrollIntoView({ block: 'nearest' });
});
document.addEventListener('click', (event) => {
  const link = event.target.closest('#panel .title a.button');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  leave(link.matches('.close') ? close : () => load(link.href).then(() => begin()));
});
document.addEventListener('keydown', (event) => {
  const inPanel = event.target.closest('#panel, #entity');
  if (event.key === 'Escape') {
    const menu = event.target.closest('.menu[open]') ?? document.querySelector('.menu[open]');
    if (menu) {
      menu.open = false;
      menu.querySelector('summary').focus();
    } else if (!event.repeat && grid && document.getElementById('panel') && !event.target.closest('.query')) {
      if (pending) drop();
      else leave(close);
    }
  }
  if (inPanel && event.ctrlKey && event.key === 'Enter') {
    event.preventDefault();
    event.stopImmediatePropagation();
    inPanel.querySelector('button.primary')?.click();
  }
}, true);

// What was typed and not staged yet.
document.addEventListener('input', (event) => {
  const field = event.target;
  if (!field.closest('#entity')) return;
  unask();
  if (field.matches('[name=value]')) field.classList.toggle('changed', field.value !== field.defaultValue);
});

// The button for the selected rows is there while some are.
const picked = document.getElementById('picked');
if (picked) {
  const button = picked.querySelector('button');
  const count = () => {
    const rows = document.querySelectorAll('#grid tbody .pick input:checked').length;
    button.textContent = `Stage ${rows} ${rows === 1 ? 'delete' : 'deletes'}`;
    picked.hidden = !rows;
  };
  for (const name of ['change', 'picked']) document.addEventListener(name, count);
  count();
}
