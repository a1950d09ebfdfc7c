// The grid by keyboard: arrows move between cells, Enter opens the entity, the space bar selects the row, and Alt with an arrow resizes
// the column. Ctrl+C copies a cell, and Ctrl+Shift+C the row as JSON. With the mouse, the right edge of a heading resizes its column.

import { post } from './post.js';

const grid = document.getElementById('grid');

if (grid) {
  grid.setAttribute('role', 'grid');
  const rows = grid.tBodies[0].rows;
  const addAll = fill(grid);
  let current = null;

  const focus = (cell) => {
    if (!cell) return;
    current?.removeAttribute('tabindex');
    current = cell;
    cell.tabIndex = 0;
    cell.focus();
    cell.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  };
  const at = (row, column) => {
    const cells = rows[Math.max(0, Math.min(rows.length - 1, row))]?.cells;
    return cells?.[Math.max(1, Math.min(cells.length - 2, column))];
  };
  const pageful = () => Math.max(1, Math.floor(grid.parentElement.clientHeight / 27) - 2);
  const moves = {
    ArrowUp: (row, column) => at(row - 1, column),
    ArrowDown: (row, column) => at(row + 1, column),
    ArrowLeft: (row, column) => at(row, column - 1),
    ArrowRight: (row, column) => at(row, column + 1),
    PageUp: (row, column) => at(row - pageful(), column),
    PageDown: (row, column) => at(row + pageful(), column),
    Home: (row, column, all) => at(all ? 0 : row, 1),
    End: (row, column, all) => {
      if (all) addAll();
      return at(all ? rows.length - 1 : row, 1e6);
    },
  };

  const headings = grid.tHead.rows[0].cells;
  const columns = grid.querySelectorAll('col');
  // Where the row key stays while the other columns scroll.
  const stick = () => grid.style.setProperty('--second', `${Number(columns[0]?.width) + Number(columns[1]?.width)}px`);
  if (grid.dataset.table) {
    stick();
    grid.parentElement.addEventListener('scroll', ({ target }) => grid.classList.toggle('aside', target.scrollLeft > 0));
  }
  const resize = (heading, width, isLast) => {
    const pixels = Math.round(Math.max(40, Math.min(1200, width)));
    columns[heading.cellIndex].width = pixels;
    stick();
    if (isLast) post(`/t/${encodeURIComponent(grid.dataset.table)}/width`, { column: heading.dataset.name, width: pixels });
  };
  for (const heading of headings) {
    if (!heading.dataset.name) continue;
    const grip = document.createElement('span');
    grip.className = 'grip';
    heading.append(grip);
    grip.addEventListener('pointerdown', (event) => {
      const start = event.clientX - heading.offsetWidth;
      grip.setPointerCapture(event.pointerId);
      grip.onpointermove = (move) => resize(heading, move.clientX - start);
      grip.onpointerup = (end) => {
        grip.onpointermove = grip.onpointerup = null;
        resize(heading, end.clientX - start, true);
      };
      event.preventDefault();
    });
  }

  untab(grid.tBodies[0].rows);
  // The whole value, of which a cell may show the beginning. With no heading, the row.
  const textOf = async (row, heading, cell) => {
    const box = row.querySelector('input');
    // A row of another grid is no entity.
    if (!box) return (heading ? cell : row).innerText;
    const [pk, rk] = JSON.parse(box.value);
    const fields = { pk, rk };
    if (heading) fields.name = heading.dataset.name ?? heading.textContent.trim();
    const path = `/t/${encodeURIComponent(grid.dataset.table)}/text?${new URLSearchParams(fields)}`;
    const response = await fetch(path).catch(() => null);
    return response?.ok ? response.text() : null;
  };
  const copy = async (row, heading, cell) => {
    const text = await textOf(row, heading, cell);
    if (text === null) return;
    await navigator.clipboard.writeText(text);
    const copied = heading ? [cell] : [...row.cells];
    for (const it of copied) it.classList.add('copied');
    setTimeout(() => copied.forEach((it) => it.classList.remove('copied')), 600);
  };

  // The panel knows the cell from which it is opened; another grid has links alone.
  const open = (cell) => {
    if (cell.dispatchEvent(new Event('open', { bubbles: true, cancelable: true }))) cell.parentElement.querySelector('a')?.click();
  };
  const first = at(0, 2);
  if (first) {
    first.tabIndex = 0;
    current = first;
  }
  grid.addEventListener('mousedown', (event) => {
    const cell = event.target.closest('tbody td');
    if (cell && !event.target.closest('a, input')) focus(cell);
  });
  // With Shift, a box of a row sets those from the last one on.
  let lastBox = null;
  grid.addEventListener('click', (event) => {
    if (!event.target.matches('tbody .pick input')) return;
    const [box, row] = [event.target, event.target.closest('tr').sectionRowIndex];
    const from = event.shiftKey && lastBox?.isConnected ? lastBox.closest('tr').sectionRowIndex : row;
    for (let each = Math.min(from, row); each <= Math.max(from, row); each += 1) rows[each].querySelector('input').checked = box.checked;
    lastBox = box;
  });
  grid.addEventListener('dblclick', (event) => {
    const cell = event.target.closest('tbody td:not(.pick)');
    if (cell) open(cell);
  });
  grid.addEventListener('keydown', (event) => {
    const cell = event.target.closest('tbody td');
    if (!cell || event.metaKey) return;
    const row = cell.parentElement;
    if (event.ctrlKey && event.key.toLowerCase() === 'c' && getSelection().isCollapsed) {
      event.preventDefault();
      return copy(row, event.shiftKey ? null : headings[cell.cellIndex], cell);
    }
    if (event.altKey) {
      const step = { ArrowLeft: -16, ArrowRight: 16 }[event.key];
      const heading = headings[cell.cellIndex];
      if (!step || !heading.dataset.name) return;
      event.preventDefault();
      return resize(heading, heading.offsetWidth + step, true);
    }
    const move = moves[event.key];
    if (move) {
      focus(move(row.sectionRowIndex, cell.cellIndex, event.ctrlKey));
    } else if (event.key === 'Enter' && event.target === cell && !event.ctrlKey) {
      open(cell);
    } else if (event.key === ' ' && event.target === cell) {
      const { shiftKey } = event;
      row.querySelector('input')?.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, shiftKey }));
    } else {
      return;
    }
    event.preventDefault();
  });

  grid.querySelector('[data-all]')?.addEventListener('change', (event) => {
    addAll();
    for (const box of grid.querySelectorAll('tbody .pick input')) box.checked = event.target.checked;
    grid.dispatchEvent(new Event('picked', { bubbles: true }));
  });
}

// The Tab key stops at the grid once: Enter and the space bar stand for what a row has.
function untab(rows) {
  for (const row of rows) for (const each of row.querySelectorAll('a, input')) each.tabIndex = -1;
}

// Moves the rows that the page keeps as text into the table, a few at a time. The result moves all of them at once.
function fill(grid) {
  const text = document.getElementById('more')?.textContent ?? '';
  const rows = grid.tBodies[0].rows;
  let at = text.indexOf('<tr');
  const add = (count) => {
    let to = at;
    for (let left = count; left > 0 && to >= 0; left -= 1) {
      const end = text.indexOf('</tr>', to);
      if (end < 0) break;
      to = end + 5;
    }
    const known = rows.length;
    if (to > at) grid.tBodies[0].insertAdjacentHTML('beforeend', text.slice(at, to));
    untab([...rows].slice(known));
    at = text.indexOf('<tr', to) < 0 ? -1 : to;
    if (at < 0) grid.dataset.complete = '';
  };
  const idle = window.requestIdleCallback ?? ((run) => setTimeout(run, 30));
  const next = () => {
    add(60);
    if (at >= 0) idle(next, { timeout: 200 });
  };
  idle(next);
  grid.parentElement.addEventListener('scroll', (event) => {
    const { scrollTop, scrollHeight, clientHeight } = event.target;
    if (at >= 0 && scrollHeight - scrollTop < 3 * clientHeight) add(120);
  });
  return () => {
    if (at >= 0) add(Infinity);
  };
}
