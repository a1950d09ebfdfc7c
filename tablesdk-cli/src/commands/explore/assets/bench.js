// Requests as they come: new rows are read from the program while the page is visible, the last one is in view, and nothing is selected.

const grid = document.querySelector('#grid[data-live]');

if (grid) {
  const ROWS_MAX = 1000;
  const SECOND = 1000;
  const main = grid.parentElement;
  const body = grid.tBodies[0];
  const live = document.createElement('button');
  const said = document.createElement('span');
  let last = Number(body.dataset.last);
  let isPaused = 'paused' in grid.dataset;
  let hasFailed = false;

  live.type = 'button';
  said.className = 'hidden';
  said.setAttribute('role', 'status');
  document.getElementById('watch').prepend(live, said);
  document.getElementById('refresh').remove();

  const isAtEnd = () => main.scrollHeight - main.scrollTop - main.clientHeight < 40;
  const isSelecting = () => !getSelection().isCollapsed && grid.contains(getSelection().anchorNode);
  const show = (text, tone, hint) => {
    if (live.textContent === text) return;
    live.textContent = text;
    live.className = `pill ${tone}`;
    live.title = hint;
    said.textContent = text;
  };
  const showState = () => {
    if (hasFailed) show('not connected', 'bad', 'The test kit does not answer; it is asked again');
    else if (isPaused) show('paused', 'warn', 'Show new requests as they come');
    else show('live', 'good', 'Stop at these requests');
  };
  const toEnd = () => { main.scrollTop = main.scrollHeight; };
  const pause = (paused) => {
    isPaused = paused;
    if (!paused) toEnd();
    showState();
  };

  const add = (html) => {
    const fresh = new DOMParser().parseFromString(html, 'text/html').querySelector('tbody');
    if (!fresh) return;
    for (const count of document.querySelectorAll('[data-count]')) {
      count.textContent = Number(count.textContent) + Number(fresh.dataset[count.dataset.count]);
    }
    last = Number(fresh.dataset.last);
    if (!fresh.rows.length) return;
    document.getElementById('nothing')?.remove();
    // The Tab key stops at the grid once.
    for (const link of fresh.querySelectorAll('a')) link.tabIndex = -1;
    body.append(...fresh.rows);
    while (body.rows.length > ROWS_MAX) body.rows[0].remove();
    toEnd();
  };

  const poll = async () => {
    if (document.hidden || isPaused || isSelecting()) return;
    const find = new URLSearchParams(location.search).get('find') ?? '';
    try {
      const response = await fetch(`/bench/requests/after/${last}?${new URLSearchParams({ find })}`);
      if (!response.ok) throw new Error(await response.text());
      // A server that was started again counts from 1.
      if (hasFailed) location.reload();
      add(await response.text());
    } catch {
      hasFailed = true;
    }
    showState();
  };

  main.addEventListener('scroll', () => {
    if (!isPaused && !isAtEnd()) pause(true);
  }, { passive: true });
  live.addEventListener('click', () => pause(!isPaused));
  document.addEventListener('visibilitychange', poll);
  if (!isPaused) toEnd();
  else grid.querySelector('tr.open')?.scrollIntoView({ block: 'nearest' });
  showState();
  const next = async () => {
    await poll();
    setTimeout(next, hasFailed ? 5 * SECOND : SECOND);
  };
  setTimeout(next, SECOND);
}
