// Loads the page again after some seconds, when the service may have time, or changes may be sent.

const again = document.querySelector('[data-again]');
if (again) {
  again.hidden = false;
  setTimeout(() => location.reload(), again.dataset.again * 1000);
}
