// Before the first paint, so that nothing flashes: the chosen theme and language.
(function () {
  var root = document.documentElement;
  try {
    var theme = localStorage.getItem('ringshift.theme');
    if (theme === 'light' || theme === 'dark') root.dataset.theme = theme;
    var language = localStorage.getItem('ringshift.language');
    if (language === 'zh') root.lang = 'zh-CN';
  } catch (error) {
    // Storage is switched off: the browser's own preferences count.
  }
})();
