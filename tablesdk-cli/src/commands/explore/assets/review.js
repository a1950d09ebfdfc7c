// The staged changes: keys to review and to send them. The bar below a page leaves the page where it is.

import { isTyping } from './query.js';

document.addEventListener('keydown', (event) => {
  if (event.altKey || event.metaKey || event.repeat) return;
  if (event.ctrlKey && event.key === 'Enter') {
    document.querySelector('.send .staged')?.click();
  } else if (!event.ctrlKey && event.key === 'r' && !isTyping(event.target)) {
    document.querySelector('#bar a.staged')?.click();
  }
});

document.addEventListener('submit', async (event) => {
  const form = event.target;
  if (!form.closest('#bar')) return;
  event.preventDefault();
  const { submitter } = event;
  const body = new URLSearchParams(new FormData(form, submitter));
  const answer = await fetch(submitter.getAttribute('formaction') ?? form.getAttribute('action'), { method: 'POST', redirect: 'manual', body }).catch(() => null);
  // Something else was staged since: the review shows it.
  if (answer?.type !== 'opaqueredirect') return location.assign('/review');
  sessionStorage.setItem('bar', 'changed');
  location.reload();
});
// What was pressed is no longer there.
if (sessionStorage.getItem('bar')) (document.querySelector('#bar .discarded button, #bar a') ?? document.getElementById('main'))?.focus();
sessionStorage.removeItem('bar');
