// Loads the page again when the service may have time for it.

const again = document.querySelector('[data-again]');
if (again) {
  again.hidden = false;
  setTimeout(() => location.reload(), again.dataset.again * 1000);
}
