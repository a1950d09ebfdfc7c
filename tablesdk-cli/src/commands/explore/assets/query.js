// The fields of the query: what it would cost while it is typed, what is not valid before it is sent, completion of the filter, and keys to
// get there. After a query, the focus is on what it has found.

const form = document.getElementById('query');
const access = document.getElementById('access');

export const isTyping = (element) => element.matches('input:not([type=checkbox]), textarea, select');

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey && event.key === 'Enter' && form) {
    event.preventDefault();
    form.requestSubmit();
  }
  if (event.ctrlKey || event.altKey || event.metaKey || isTyping(event.target)) return;
  if (event.key === '?') {
    const keys = document.getElementById('keys');
    keys.open = true;
    keys.querySelector('summary').focus();
  }
  const target = { '/': '.find', f: '#filter' }[event.key];
  const field = target && document.querySelector(target);
  if (field) {
    event.preventDefault();
    field.focus();
    field.select();
  }
});

// Tables: the sidebar shows those that contain the text.
const find = document.querySelector('.find');
find?.addEventListener('input', () => {
  const text = find.value.toLowerCase();
  for (const link of document.querySelectorAll('.names .table')) {
    link.hidden = !link.textContent.toLowerCase().includes(text);
  }
  for (const series of document.querySelectorAll('.names :is(details, .group)')) {
    series.hidden = !series.querySelector('.table:not([hidden])');
    if (text) series.open = !series.hidden;
  }
  opens(text !== '');
});
find?.addEventListener('keydown', (event) => {
  if (event.key === 'ArrowDown') {
    event.preventDefault();
    document.querySelector('.names .table:not([hidden])')?.focus();
  }
});
// Where the window is narrow, the names are below the button.
const all = document.querySelector('.side .all');
all?.addEventListener('click', (event) => {
  if (!document.querySelector('.names .table')) return;
  event.preventDefault();
  opens(!all.parentElement.matches('.open'));
});
function opens(isOpen) {
  all.parentElement.classList.toggle('open', isOpen);
  all.setAttribute('aria-expanded', String(isOpen));
}
all?.parentElement.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || !all.parentElement.matches('.open')) return;
  all.click();
  all.focus();
});

if (form) {
  let timer;
  let asked;
  // The name of the field that is not valid.
  const check = async () => {
    asked?.abort();
    asked = new AbortController();
    const query = new URLSearchParams(new FormData(form));
    try {
      const response = await fetch(`${form.action}/access?${query}`, { signal: asked.signal });
      if (!response.ok) return null;
      access.innerHTML = await response.text();
    } catch {
      // Another one was asked for, or the program has ended, which the next page says.
      return null;
    }
    const wrong = access.querySelector('[data-field]')?.dataset.field;
    for (const field of form.querySelectorAll('.field input')) {
      field.toggleAttribute('aria-describedby', false);
      field.setAttribute('aria-invalid', String(field.name === wrong));
      if (field.name === wrong) field.setAttribute('aria-describedby', 'problem');
    }
    return wrong;
  };
  form.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(check, 150);
  });
  // A query that is not valid leaves the last result where it is.
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    clearTimeout(timer);
    const { activeElement } = document;
    const wrong = await check();
    if (wrong) return form.elements[wrong].focus();
    document.body.setAttribute('aria-busy', 'true');
    sessionStorage.setItem('ran', activeElement?.name || 'filter');
    form.submit();
  });
  complete(document.getElementById('filter'));
}

// After a query, the focus is on the first cell, on what can be done further, or on the field where it was.
document.addEventListener('click', (event) => {
  if (event.target.closest('#next, main .notice a') && !event.ctrlKey && !event.metaKey) sessionStorage.setItem('ran', 'filter');
});
const ran = sessionStorage.getItem('ran');
sessionStorage.removeItem('ran');
if (ran && form) {
  (document.querySelector('#grid td[tabindex="0"]') ?? document.querySelector('main .notice a') ?? form.elements[ran])?.focus();
}
// The column that was moved in the menu, which stays open.
if (location.hash) {
  const part = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const menu = part?.closest('details');
  if (menu) {
    menu.open = true;
    // The browser itself goes to the part once the page is there, and then to its focus.
    addEventListener('load', () => requestAnimationFrame(() => (part.querySelector('.primary') ?? part.querySelector('button')).focus()));
  }
}

// Names of properties, operators and words at the end of what was typed.
function complete(field) {
  const list = document.createElement('ul');
  list.className = 'options';
  list.id = 'options';
  list.setAttribute('role', 'listbox');
  list.setAttribute('aria-label', 'Completions');
  list.hidden = true;
  field.after(list);
  for (const [name, value] of Object.entries({
    role: 'combobox',
    'aria-autocomplete': 'list',
    'aria-controls': 'options',
    'aria-expanded': 'false',
  })) {
    field.setAttribute(name, value);
  }
  let selected = -1;

  const names = () =>
    ['PartitionKey', 'RowKey', 'Timestamp']
      .map((name) => [name, ''])
      .concat([...document.querySelectorAll('th[data-name]')].map((th) => [th.dataset.name, th.dataset.type.replace('Edm.', '')]));
  const operators = ['eq', 'ne', 'gt', 'ge', 'lt', 'le'].map((word) => [word, 'compare']);
  const words = [['and', ''], ['or', '']];

  // What may come next, by the words before: a name, an operator, or a word that joins.
  const candidates = (before) => {
    const outside = before.replace(/'(?:[^']|'')*'/g, "''");
    if ((outside.match(/'/g) ?? []).length % 2) return [];
    const last = outside.trim().split(/[\s()]+/).pop() ?? '';
    if (!last || /^(and|or|not)$/.test(last)) return names().concat(outside.trim() ? [] : [['not', '']]);
    if (operators.some(([word]) => word === last)) return [];
    if (names().some(([name]) => name === last)) return operators;
    return words;
  };
  const close = () => {
    list.hidden = true;
    selected = -1;
    field.setAttribute('aria-expanded', 'false');
    field.removeAttribute('aria-activedescendant');
  };
  const select = (index) => {
    const items = list.children;
    selected = (index + items.length) % items.length;
    [...items].forEach((item, at) => item.setAttribute('aria-selected', String(at === selected)));
    items[selected].scrollIntoView({ block: 'nearest' });
    field.setAttribute('aria-activedescendant', items[selected].id);
  };
  const split = () => {
    const text = field.value.slice(0, field.selectionStart);
    const word = /[^\s()]*$/.exec(text)[0];
    return [text.slice(0, text.length - word.length), word];
  };
  const take = (name) => {
    const [before] = split();
    const after = field.value.slice(field.selectionStart);
    field.value = `${before}${name} ${after.trimStart()}`;
    field.selectionStart = field.selectionEnd = before.length + name.length + 1;
    field.dispatchEvent(new Event('input', { bubbles: true }));
  };
  const open = () => {
    const [before, word] = split();
    const wanted = word.toLowerCase();
    const found = candidates(before).filter(([name]) => name.toLowerCase().startsWith(wanted) && name !== word);
    if (!found.length || (!word && !before)) return close();
    list.replaceChildren(
      ...found.slice(0, 50).map(([name, note], at) => {
        const item = document.createElement('li');
        item.id = `option-${at}`;
        item.setAttribute('role', 'option');
        item.setAttribute('aria-selected', 'false');
        item.append(name);
        const small = document.createElement('small');
        small.textContent = note;
        item.append(small);
        item.addEventListener('mousedown', (event) => {
          event.preventDefault();
          take(name);
        });
        item.dataset.name = name;
        return item;
      }),
    );
    list.hidden = false;
    field.setAttribute('aria-expanded', 'true');
  };
  field.addEventListener('input', open);
  field.addEventListener('blur', close);
  field.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown' && list.hidden) return open();
    if (list.hidden || event.ctrlKey) return;
    if (event.key === 'ArrowDown') select(selected + 1);
    else if (event.key === 'ArrowUp') select(selected - 1);
    else if (event.key === 'Escape') close();
    else if ((event.key === 'Enter' || event.key === 'Tab') && selected >= 0) take(list.children[selected].dataset.name);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}
