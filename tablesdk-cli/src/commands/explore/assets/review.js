// The staged changes: keys to review and to send them. The bar below a page leaves the page where it is.

document.addEventListener('keydown', (event) => {
  if (event.altKey || event.metaKey || event.repeat) return;
  if (event.ctrlKey && event.key === 'Enter') {
    document.querySelector('.send .staged')?.click();
  } else if (!event.ctrlKey && event.key === 'r' && !event.target.matches('input:not([type=checkbox]), textarea, select')) {
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
  if (answer?.type === 'opaqueredirect') location.reload();
  // Something else was staged since: the review shows it.
  else location.assign('/review');
});
