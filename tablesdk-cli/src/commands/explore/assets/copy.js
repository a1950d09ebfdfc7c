// Copies the text of the element that a button names.

const reveal = () => {
  for (const button of document.querySelectorAll('[data-copy][hidden]')) button.hidden = false;
};
reveal();
new MutationObserver(reveal).observe(document.body, { childList: true, subtree: true });

document.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-copy]');
  const source = button && document.getElementById(button.dataset.copy);
  if (!source) return;
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = 'copied';
  } catch {
    button.textContent = 'not copied: the browser refused';
  }
  button.setAttribute('aria-live', 'polite');
  setTimeout(() => {
    button.textContent = label;
  }, 1500);
});
