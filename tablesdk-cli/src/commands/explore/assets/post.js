// Sends a form of the page, with its token.

export const post = (path, fields) =>
  fetch(path, {
    method: 'POST',
    redirect: 'manual',
    body: new URLSearchParams({ ...fields, token: document.querySelector('meta[name=token]').content }),
  });
